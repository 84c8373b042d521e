#include <c10/util/Exception.h>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/data_error.h"
#include "trainer/loop/error_record.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::loop {

Failure CurrentFailure() {
  try {
    throw;
  } catch (const TrainerError& error) {
    return {error.code(), error.kind(), error.what()};
  } catch (const data::DataError& error) {
    return {ExitCode::kData, "data", error.what()};
  } catch (const tokenizer::TokenizerError& error) {
    return {ExitCode::kData, "data", error.what()};
  } catch (const checkpoint::SafetensorsError& error) {
    return {ExitCode::kCheckpoint, "checkpoint", error.what()};
  } catch (const c10::Error& error) {
    return {ExitCode::kInternal, "internal", error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {ExitCode::kInternal, "internal", error.what()};
  } catch (...) {
    return {ExitCode::kInternal, "internal", "unknown exception"};
  }
}

}  // namespace muster::loop
