/**
 * Completion scripts for shells. Each script calls the program itself (`__complete`), so it always matches the installed
 * version. Pure.
 */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** `name` is the command that starts the program. */
export function completionScript(shell: Shell, name: string): string {
  return SCRIPTS[shell](name, `_${name.replaceAll(/\W/g, '_')}_completion`);
}

/** The example in the help: how to load a script. */
export const completionExample = (name: string) =>
  [
    '  # Enable completion in this bash session, and in every new one:',
    `  source <(${name} completion bash)`,
    `  echo 'source <(${name} completion bash)' >> ~/.bashrc`,
    '',
    '  # In zsh, after compinit:',
    `  source <(${name} completion zsh)`,
    '',
    '  # In fish:',
    `  ${name} completion fish | source`,
  ].join('\n');

const SCRIPTS: Readonly<Record<Shell, (name: string, fn: string) => string>> = {
  // Splits the line itself, because bash also splits at = and :, and replaces only the part after them.
  bash: (name, fn) => `# bash completion for ${name}: source <(${name} completion bash)
${fn}() {
  local line="\${COMP_LINE:0:COMP_POINT}" cur="" prefix="" one directive=":4"
  local -a words=()
  read -r -a words <<<"$line"
  case $line in
    *[[:space:]]) words+=("") ;;
  esac
  cur="\${words[\${#words[@]} - 1]}"
  case $cur in
    -*=*) prefix="\${cur%%=*}=" ;;
  esac
  COMPREPLY=()
  while IFS= read -r one; do
    case $one in
      :[0-9]*) directive=$one ;;
      *)
        one="\${one%%$'\\t'*}"
        COMPREPLY+=("\${one#"$prefix"}")
        ;;
    esac
  done < <("\${words[0]}" __complete "\${words[@]:1}" 2>/dev/null)
  if [ "$directive" = ":0" ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r one; do COMPREPLY+=("$one"); done < <(compgen -f -- "\${cur#"$prefix"}")
  fi
}
complete -F ${fn} ${name}
`,
  zsh: (name, fn) => `#compdef ${name}
# zsh completion for ${name}: source <(${name} completion zsh)
${fn}() {
  local -a lines candidates
  local one word directive=":4"
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for one in "\${lines[@]}"; do
    case $one in
      '') ;;
      :[0-9]*) directive=$one ;;
      *$'\\t'*)
        word=\${one%%$'\\t'*}
        candidates+=("\${word//:/\\\\:}:\${one#*$'\\t'}")
        ;;
      *) candidates+=("\${one//:/\\\\:}") ;;
    esac
  done
  [[ $directive == ":0" ]] && _files
  (( \${#candidates} )) && _describe '${name}' candidates
}
if [ "\${funcstack[1]}" = "_${name}" ]; then
  ${fn} "$@"
else
  compdef ${fn} ${name}
fi
`,
  fish: (name, fn) => `# fish completion for ${name}: ${name} completion fish | source
function ${fn}
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] "$cur" 2>/dev/null)
    for one in $lines
        switch $one
            case ':0'
                __fish_complete_path "$cur"
            case ':*'
                continue
            case '*'
                echo $one
        end
    end
end
complete -c ${name} -f -a '(${fn})'
`,
};
