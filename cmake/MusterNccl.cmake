# muster_nccl: NCCL and LibTorch's CUDA half, both from the Python environment's wheels. A program that links it starts on
# machines without a GPU too.
file(GLOB muster_nccl_folder ${MUSTER_TORCH_DIR}/../nvidia/nccl)
if(EXISTS ${muster_nccl_folder}/include/nccl.h AND EXISTS ${MUSTER_TORCH_DIR}/lib/libtorch_cuda.so)
  add_library(muster_nccl INTERFACE)
  target_include_directories(muster_nccl SYSTEM INTERFACE ${muster_nccl_folder}/include)
  # LibTorch finds its CUDA half only in a program that has been linked to it.
  target_link_libraries(muster_nccl INTERFACE -Wl,--no-as-needed ${MUSTER_TORCH_DIR}/lib/libtorch_cuda.so
                                              ${MUSTER_TORCH_DIR}/lib/libc10_cuda.so -Wl,--as-needed
                                              ${muster_nccl_folder}/lib/libnccl.so.2 CUDA::cudart muster_torch)
else()
  message(STATUS "NCCL not found beside ${MUSTER_TORCH_DIR}: muster-commtest will have Gloo only")
endif()
