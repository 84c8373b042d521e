# muster_add_library(name SRCS a.cc ... DEPS other ...): static library; includes are from the top of the tree.
# muster_add_program(name SRCS main.cc ... DEPS lib ...): program in build/<preset>/bin.
# muster_add_test(name SRCS a_test.cc ... DEPS lib ... LABELS unit ...): one GoogleTest binary, one ctest entry.
# muster_add_pytest(name FILE test_x.py LABELS e2e ... [TIMEOUT s]): a pytest file that gets MUSTER_BIN and MUSTER_SOURCE.
# RPC: the target includes gRPC or generated headers and shares their precompiled header.

function(muster_add_library name)
  cmake_parse_arguments(arg "RPC" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SRCS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_DEPS})
  if(arg_RPC)
    target_precompile_headers(${name} REUSE_FROM muster_rpc_pch)
  endif()
endfunction()

function(muster_add_program name)
  cmake_parse_arguments(arg "RPC" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  if(arg_RPC)
    target_precompile_headers(${name} REUSE_FROM muster_rpc_pch)
  endif()
endfunction()

set(MUSTER_TEST_ENVIRONMENT
    "MUSTER_BIN=${CMAKE_BINARY_DIR}/bin" "MUSTER_SOURCE=${PROJECT_SOURCE_DIR}"
    "MUSTER_GOLDEN=${PROJECT_SOURCE_DIR}/tests/golden")

function(muster_add_test name)
  cmake_parse_arguments(arg "RPC" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  if(arg_RPC)
    target_precompile_headers(${name} REUSE_FROM muster_rpc_pch)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                                          ENVIRONMENT "${MUSTER_TEST_ENVIRONMENT}")
endfunction()

function(muster_add_pytest name)
  cmake_parse_arguments(arg "SERIAL" "FILE;TIMEOUT" "LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python -m pytest -q -x -p no:cacheprovider
                                ${CMAKE_CURRENT_SOURCE_DIR}/${arg_FILE})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                                          ENVIRONMENT "${MUSTER_TEST_ENVIRONMENT}")
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
