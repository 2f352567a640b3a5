/** The `virtctl` program; also `kubectl virt`, by the name under which kubectl finds it (kubectl-virt). */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { createPrograms } from '#cli/programs.ts';
import { runVirtctl } from '#cli/run.ts';
import { systemClock } from '#lib/clock.ts';

// A reader that has seen enough and closes the pipe is no fault of ours.
process.stdout.on('error', () => {});

// As long as a command waits for it, that is what a signal does; otherwise it ends us as ever.
const untilInterrupted = () =>
  new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });

const launcher = process.env['VIRTCTL_LAUNCHER'];
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
  programs: createPrograms(
    process.env['PATH'],
    launcher === undefined ? [process.execPath, ...process.argv.slice(1, 2)] : [launcher],
  ),
  untilInterrupted,
});
process.exitCode = code;
// An input that nobody reads any more would keep the program waiting.
process.stdin.destroy();
