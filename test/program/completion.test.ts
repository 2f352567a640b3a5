/** Completion in real shells, and kubectl virt as kubectl finds it. The shells call the program itself. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, test } from 'node:test';
import { SHELLS } from '#lib/command-line/completion-script.ts';
import packageJson from '../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../..');
let dir = '';
let env: NodeJS.ProcessEnv = {};

before(() => {
  dir = mkdtempSync(join(tmpdir(), 'completion-'));
  // As npm links them into a directory of the PATH.
  for (const [name, file] of Object.entries(packageJson.bin)) symlinkSync(join(ROOT, file), join(dir, name));
  writeFileSync(join(dir, 'machine.ova'), '');
  env = { PATH: `${dir}${delimiter}${process.env['PATH']}`, HOME: dir, KUBECONFIG: join(dir, 'none') };
});
after(() => rmSync(dir, { recursive: true, force: true }));

const run = (file: string, ...args: string[]) => execFileSync(file, args, { env, cwd: dir, encoding: 'utf8' });

function isInstalled(shell: string): boolean {
  try {
    execFileSync(shell, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Typed lines, and their completions. */
const typed: Record<string, string> = {
  'virtctl sta': 'start state',
  'virtctl identity ': 'diff duplicates history renew show',
  'virtctl start --pau': '--paused',
  'virtctl version -o ': 'json yaml',
  'virtctl import ovf mach': 'machine.ova',
  'virtctl start ': '',
  'selfsame doc': 'doctor',
  'selfsame up --accel k': 'kvm',
};

const DRIVERS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `
    for program in virtctl selfsame; do source <($program completion bash); complete -p $program >/dev/null; done
    ask() { COMP_LINE=$1 COMP_POINT=\${#1}; "_\${1%% *}_completion"; echo "\${COMPREPLY[*]}"; }`,
  // Stand-ins for the functions of zsh's completion that the script calls.
  zsh: `
    compdef() { :; }
    _describe() { local one; for one in "\${(@P)2}"; do out+=(\${one%%:*}); done; }
    _files() { out+=(\${words[CURRENT]}*(N)); }
    for program in virtctl selfsame; do source <($program completion zsh); done
    ask() { local -a out; words=("\${(@s: :)1}"); CURRENT=\${#words}; "_\${words[1]}_completion"; echo $out; }`,
  fish: `
    for program in virtctl selfsame; $program completion fish | source; end
    function ask; echo (complete -C $argv[1] | string replace -r '\\t.*' ''); end`,
};

for (const shell of SHELLS) {
  const skip = shell === 'bash' || isInstalled(shell) ? false : `there is no ${shell} on this machine`;
  test(`${shell} completes commands, flags, values and files`, { skip }, () => {
    const asks = Object.keys(typed).map((line) => `ask '${line}'`);
    const noRc = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] }[shell];
    const completions = run(shell, ...noRc, '-c', [DRIVERS[shell], ...asks].join('\n')).split('\n');
    assert.deepEqual(Object.fromEntries(Object.keys(typed).map((line, i) => [line, completions[i]])), typed);
  });
}

test('kubectl finds virtctl as its plugin, and gets the completions of kubectl virt from it', () => {
  assert.match(run('kubectl', 'plugin', 'list'), new RegExp(`^${dir}/kubectl-virt$`, 'm'));
  assert.match(run('kubectl', 'virt', 'version', '--client'), /^Client Version: version\.Info\{GitVersion:"v/);
  assert.match(run('kubectl', 'virt', 'start', '--help'), /^ {2}kubectl virt start \(VM\) \[flags\]$/m);
  // The command that kubectl runs.
  assert.equal(run('kubectl_complete-virt', 'star'), 'start\tStart a virtual machine.\n:4\n');
});
