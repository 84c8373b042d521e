# muster_cudnn: cuDNN with cudnn-frontend's headers (tests/requirements.txt pins them), for CUDA builds. The target is left
# out, with a message, where one of the two is missing. cuDNN comes from the Python environment that LibTorch comes from
# (one process must not hold two versions), else from the CUDA toolkit.
if(TARGET muster_cudnn)
  return()
endif()
get_filename_component(muster_site_packages ${MUSTER_TORCH_DIR} DIRECTORY)
file(GLOB muster_venv_includes ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/include)
find_path(MUSTER_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${muster_site_packages}/include ${muster_venv_includes})
find_path(MUSTER_CUDNN_INCLUDE cudnn.h HINTS ${muster_site_packages}/nvidia/cudnn/include ${CUDAToolkit_INCLUDE_DIRS})
find_library(MUSTER_CUDNN_LIBRARY NAMES libcudnn.so.9
             HINTS ${muster_site_packages}/nvidia/cudnn/lib ${CUDAToolkit_LIBRARY_DIR})
if(NOT MUSTER_CUDNN_FRONTEND_INCLUDE OR NOT MUSTER_CUDNN_INCLUDE OR NOT MUSTER_CUDNN_LIBRARY)
  message(STATUS "cuDNN attention is left out: cudnn_frontend.h '${MUSTER_CUDNN_FRONTEND_INCLUDE}', cudnn.h "
                 "'${MUSTER_CUDNN_INCLUDE}', libcudnn.so.9 '${MUSTER_CUDNN_LIBRARY}'; ./dev setup installs them")
  return()
endif()
add_library(muster_cudnn INTERFACE)
target_include_directories(muster_cudnn SYSTEM INTERFACE ${MUSTER_CUDNN_FRONTEND_INCLUDE} ${MUSTER_CUDNN_INCLUDE})
target_compile_definitions(muster_cudnn INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
target_link_libraries(muster_cudnn INTERFACE ${MUSTER_CUDNN_LIBRARY} CUDA::cudart)
