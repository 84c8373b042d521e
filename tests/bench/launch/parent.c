/* parent PROGRAM: starts PROGRAM, waits for it, and ends as it ended. The least that a parent for each rank can be. */
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>

int main(int argc, char** argv) {
  char* none[] = {NULL};
  pid_t pid;
  int status;
  if (argc < 2 || posix_spawn(&pid, argv[1], NULL, NULL, argv + 1, none) != 0) return 1;
  if (waitpid(pid, &status, 0) != pid) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
