# bash completion for muster; made by `muster completion bash`.
_muster_jobs() { echo last; muster ps --json 2>/dev/null | grep -oE '"(job|name)":"[^"\\]+"' | cut -d '"' -f 4; }
_muster_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_muster_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

_muster() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == -- ]]; then _muster_files -f; return; fi
    if [[ -z $command && $word != -* ]]; then command=$word; fi
  done
  case $command in
    '') _muster_words 'submit plan check hosts ps logs stop why cleanup stage bundle nodes serve cert version completion --help --version' ;;
    submit)
      case $prev in
        --hostfile) _muster_files -f; return ;;
        --host) :; return ;;
        --include) :; return ;;
        --exclude) :; return ;;
        --nnodes) :; return ;;
        --nproc-per-node) :; return ;;
        --transport) _muster_words 'local direct ssh openssh command'; return ;;
        --tp) :; return ;;
        --pp) :; return ;;
        --cp) :; return ;;
        --vp) :; return ;;
        --micro-batch) :; return ;;
        --global-batch) :; return ;;
        --num-microbatches) :; return ;;
        --name) :; return ;;
        --env) :; return ;;
        --env-file) _muster_files -f; return ;;
        --bind-to) _muster_words 'numa none'; return ;;
        --flag) :; return ;;
        --grace) :; return ;;
        --workdir) _muster_files -d; return ;;
        --output) _muster_files -d; return ;;
        --log-quota) :; return ;;
        --log-policy) _muster_words 'block drop-oldest-with-marker'; return ;;
        --log-rotate) :; return ;;
        --log-keep) :; return ;;
        --log-keep-size) :; return ;;
        --skip) :; return ;;
        --port-range) :; return ;;
        --check-timeout) :; return ;;
        --stage) _muster_files -d; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --hostfile --host --include --exclude --nnodes --nproc-per-node --transport --tp --pp --cp --vp --micro-batch --global-batch --num-microbatches --name --env --env-file --bind-to --flag --grace --workdir --output --log-quota --log-policy --log-rotate --log-keep --log-keep-size --skip --port-range --check-timeout --stage --detach --json'
      else
        _muster_files -f
      fi ;;
    plan)
      case $prev in
        --hostfile) _muster_files -f; return ;;
        --host) :; return ;;
        --include) :; return ;;
        --exclude) :; return ;;
        --nnodes) :; return ;;
        --nproc-per-node) :; return ;;
        --transport) _muster_words 'local direct ssh openssh command'; return ;;
        --tp) :; return ;;
        --pp) :; return ;;
        --cp) :; return ;;
        --vp) :; return ;;
        --micro-batch) :; return ;;
        --global-batch) :; return ;;
        --num-microbatches) :; return ;;
        --name) :; return ;;
        --env) :; return ;;
        --env-file) _muster_files -f; return ;;
        --bind-to) _muster_words 'numa none'; return ;;
        --flag) :; return ;;
        --grace) :; return ;;
        --workdir) _muster_files -d; return ;;
        --output) _muster_files -d; return ;;
        --log-quota) :; return ;;
        --log-policy) _muster_words 'block drop-oldest-with-marker'; return ;;
        --log-rotate) :; return ;;
        --log-keep) :; return ;;
        --log-keep-size) :; return ;;
        --skip) :; return ;;
        --port-range) :; return ;;
        --check-timeout) :; return ;;
        --device-memory) :; return ;;
        --constants) _muster_files -f; return ;;
        --top) :; return ;;
        --rank) :; return ;;
        --master-port) :; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --hostfile --host --include --exclude --nnodes --nproc-per-node --transport --tp --pp --cp --vp --micro-batch --global-batch --num-microbatches --name --env --env-file --bind-to --flag --grace --workdir --output --log-quota --log-policy --log-rotate --log-keep --log-keep-size --skip --port-range --check-timeout --device-memory --constants --compare --top --all-ranks --rank --script --master-port --json'
      else
        _muster_files -f
      fi ;;
    check)
      case $prev in
        --hostfile) _muster_files -f; return ;;
        --host) :; return ;;
        --include) :; return ;;
        --exclude) :; return ;;
        --nnodes) :; return ;;
        --nproc-per-node) :; return ;;
        --transport) _muster_words 'local direct ssh openssh command'; return ;;
        --tp) :; return ;;
        --pp) :; return ;;
        --cp) :; return ;;
        --vp) :; return ;;
        --micro-batch) :; return ;;
        --global-batch) :; return ;;
        --num-microbatches) :; return ;;
        --name) :; return ;;
        --env) :; return ;;
        --env-file) _muster_files -f; return ;;
        --bind-to) _muster_words 'numa none'; return ;;
        --flag) :; return ;;
        --grace) :; return ;;
        --workdir) _muster_files -d; return ;;
        --output) _muster_files -d; return ;;
        --log-quota) :; return ;;
        --log-policy) _muster_words 'block drop-oldest-with-marker'; return ;;
        --log-rotate) :; return ;;
        --log-keep) :; return ;;
        --log-keep-size) :; return ;;
        --skip) :; return ;;
        --port-range) :; return ;;
        --check-timeout) :; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --hostfile --host --include --exclude --nnodes --nproc-per-node --transport --tp --pp --cp --vp --micro-batch --global-batch --num-microbatches --name --env --env-file --bind-to --flag --grace --workdir --output --log-quota --log-policy --log-rotate --log-keep --log-keep-size --skip --port-range --check-timeout --verbose --deep --json'
      else
        _muster_files -f
      fi ;;
    hosts)
      case $prev in
        --hostfile) _muster_files -f; return ;;
        --host) :; return ;;
        --include) :; return ;;
        --exclude) :; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --hostfile --host --include --exclude --json'
      else
        :
      fi ;;
    ps)
      case $prev in
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --all --json'
      else
        _muster_words "$(_muster_jobs)"
      fi ;;
    logs)
      case $prev in
        --rank) :; return ;;
        --tp) :; return ;;
        --pp) :; return ;;
        --cp) :; return ;;
        --dp) :; return ;;
        --host) :; return ;;
        --stream) _muster_words 'out err'; return ;;
        --tail) :; return ;;
        --since) :; return ;;
        --grep) :; return ;;
        --attempt) _muster_words 'K all'; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --follow --rank --tp --pp --cp --dp --host --stream --tail --since --grep --attempt --times --diff --raw --json'
      else
        _muster_words "$(_muster_jobs)"
      fi ;;
    stop)
      case $prev in
        --grace) :; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --all --save --grace --json'
      else
        _muster_words "$(_muster_jobs)"
      fi ;;
    why)
      case $prev in
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --json'
      else
        _muster_words "$(_muster_jobs)"
      fi ;;
    cleanup)
      case $prev in
        --hostfile) _muster_files -f; return ;;
        --host) :; return ;;
        --include) :; return ;;
        --exclude) :; return ;;
        --transport) _muster_words 'local direct openssh command'; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --hostfile --host --include --exclude --transport --dry-run --any-controller --json'
      else
        :
      fi ;;
    stage)
      case $prev in
        --hostfile) _muster_files -f; return ;;
        --host) :; return ;;
        --include) :; return ;;
        --exclude) :; return ;;
        --transport) _muster_words 'local direct ssh openssh command'; return ;;
        --to) :; return ;;
        --keep) :; return ;;
        --port-range) :; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --hostfile --host --include --exclude --transport --to --keep --prune --verify --dry-run --port-range --json'
      else
        :
      fi ;;
    bundle)
      case $prev in
        --output) :; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --output --cpu --json'
      else
        :
      fi ;;
    nodes)
      case $prev in
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --json'
      else
        :
      fi ;;
    serve)
      case $prev in
        --state-dir) _muster_files -d; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --state-dir --background --stop --force'
      else
        :
      fi ;;
    cert)
      case $prev in
        --hostfile) _muster_files -f; return ;;
        --host) :; return ;;
        --include) :; return ;;
        --exclude) :; return ;;
        --transport) :; return ;;
        --name) :; return ;;
        --days) :; return ;;
        --remote-dir) _muster_files -d; return ;;
        --request) _muster_files -f; return ;;
        --tls-dir) _muster_files -d; return ;;
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --hostfile --host --include --exclude --transport --name --days --remote-dir --request --controller --ca --finish --tls-dir --json'
      else
        :
      fi ;;
    version)
      case $prev in
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help --json'
      else
        :
      fi ;;
    completion)
      case $prev in
      esac
      if [[ $cur == -* ]]; then
        _muster_words '--help'
      else
        _muster_words 'bash zsh fish'
      fi ;;
  esac
}
complete -F _muster muster
