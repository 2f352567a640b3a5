/** The `virtctl` program; also `kubectl virt`, by the name under which kubectl finds it (kubectl-virt). */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { runVirtctl } from '#cli/run.ts';
import { systemClock } from '#lib/clock.ts';

// A reader that has seen enough and closes the pipe is no fault of ours.
process.stdout.on('error', () => {});

// The launcher tells, since the name is lost on the way to node.
const name = process.env['VIRTCTL_CALLED_AS'] ?? 'virtctl';
const argv = process.argv.slice(2);

const code = await runVirtctl({
  // kubectl asks a program of this name for what can stand after `kubectl virt`.
  argv: name.startsWith('kubectl_complete-') ? ['__complete', ...argv] : argv,
  program: name.startsWith('kubectl-') ? 'kubectl virt' : 'virtctl',
  env: process.env,
  home: homedir(),
  readFile: (path) => readFileSync(path, 'utf8'),
  terminal: { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr },
  clock: systemClock,
});
process.exitCode = code;
// An input that nobody reads any more would keep the program waiting.
process.stdin.destroy();
