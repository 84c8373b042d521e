# LibTorch from the venv's PyTorch wheel, as plain imported targets. find_package(Torch) is not used: it wants a CUDA
# toolkit even for CPU programs, and adds odd folders to RUNPATH.
set(MUSTER_TORCH_DIR "" CACHE PATH "torch folder of the Python environment; empty: .venv, else python3's torch")
if(NOT MUSTER_TORCH_DIR)
  file(GLOB muster_torch_candidates ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(muster_torch_candidates)
    list(GET muster_torch_candidates 0 MUSTER_TORCH_DIR)
  else()
    execute_process(COMMAND python3 -c "import torch,os;print(os.path.dirname(torch.__file__))"
                    OUTPUT_VARIABLE MUSTER_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT EXISTS ${MUSTER_TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch not found ('${MUSTER_TORCH_DIR}'): run ./dev setup, or pass -DMUSTER_TORCH_DIR=...")
endif()

add_library(muster_torch INTERFACE)
target_include_directories(muster_torch SYSTEM INTERFACE ${MUSTER_TORCH_DIR}/include
                           ${MUSTER_TORCH_DIR}/include/torch/csrc/api/include)
target_compile_definitions(muster_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
target_compile_options(muster_torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unused-parameter>)
target_link_libraries(muster_torch INTERFACE ${MUSTER_TORCH_DIR}/lib/libtorch_cpu.so ${MUSTER_TORCH_DIR}/lib/libc10.so
                      Threads::Threads)
target_link_options(muster_torch INTERFACE -Wl,--allow-shlib-undefined)

if(MUSTER_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90a)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
  set(CMAKE_CUDA_STANDARD 20)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()
