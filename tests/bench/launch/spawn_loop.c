/* spawn_loop N PROGRAM: starts PROGRAM N times with posix_spawn, all at once, and waits for all; prints the seconds. The
   least that starting N ranks on this machine can take. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

int main(int argc, char** argv) {
  char* none[] = {NULL};
  struct timespec begin;
  struct timespec end;
  if (argc < 3) return 2;
  const int count = atoi(argv[1]);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < count; ++i) {
    pid_t pid;
    if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, none) != 0) return 1;
  }
  for (int i = 0; i < count; ++i) {
    if (wait(NULL) < 0) return 1;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.6f\n", (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
  return 0;
}
