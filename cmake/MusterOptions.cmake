# Options, flags and tools that every target shares.
option(MUSTER_ORCHESTRATOR "Build controller, worker and shim" ON)
option(MUSTER_CONTROLLER "Build the controller (OFF: only the static worker, for another architecture)" ON)
option(MUSTER_TRAINER "Build the trainer and its tools" ON)
option(MUSTER_TESTS "Build the tests" ON)
option(MUSTER_FUZZ "Build the fuzz targets for libFuzzer (clang only; see tests/fuzz/CMakeLists.txt)" OFF)
set(MUSTER_SANITIZE "" CACHE STRING "-fsanitize= list, empty for none")

# CUDA code is built wherever nvcc is; a machine without a GPU can compile and link it.
find_program(MUSTER_NVCC nvcc HINTS /usr/local/cuda/bin)
if(MUSTER_NVCC)
  set(muster_cuda_default ON)
else()
  set(muster_cuda_default OFF)
endif()
option(MUSTER_CUDA "Build CUDA kernels" ${muster_cuda_default})

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
if(MUSTER_FUZZ)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")  # speed finds faults, too
endif()

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  # Precompiled headers need the sloppiness; see ccache(1), "Precompiled headers".
  set(muster_launcher ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${MUSTER_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${muster_launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${muster_launcher})
endif()
# A cross compiler has a linker of its own, and looks for no other.
find_program(MUSTER_MOLD mold)
if(MUSTER_MOLD AND NOT CMAKE_CROSSCOMPILING)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wshadow> $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>
                    $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
if(MUSTER_CCACHE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()
find_package(Threads REQUIRED)
