#pragma once

#include "trainer/kernels/cuda/vectors.cuh"

namespace muster::kernels::cuda {

constexpr int kSlotBytes = 16;

// Elements on their way from device memory: slots of eight in dynamic shared memory, each thread's
// own, so that no barrier is needed. A load into a slot may begin when its last value has been
// taken.
class AsyncSlots {
 public:
  __device__ AsyncSlots() {
    extern __shared__ __align__(16) unsigned char slots[];
    mine_ = static_cast<unsigned>(__cvta_generic_to_shared(slots)) + threadIdx.x * kSlotBytes;
  }
  __device__ void Load(int slot, const Bfloat16* x) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(Address(slot)), "l"(x)
                 : "memory");
  }
  // Of all loads since the last Commit.
  __device__ static void Commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  // Until all but the latest `kPending` groups are there.
  template <int kPending>
  __device__ static void Wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  }
  __device__ Eight<Bfloat16> Take(int slot) const {
    Eight<Bfloat16> values;
    auto* const word = reinterpret_cast<uint32_t*>(values.element);
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(Address(slot))
                 : "memory");
    return values;
  }

 private:
  __device__ unsigned Address(int slot) const { return mine_ + slot * blockDim.x * kSlotBytes; }

  unsigned mine_;
};

}  // namespace muster::kernels::cuda
