/** The `virtctl` program. kubectl finds it as kubectl-virt and runs it as `kubectl virt`. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isatty } from 'node:tty';
import { createPrograms } from '#cli/programs.ts';
import { runVirtctl } from '#cli/run.ts';
import { createPluginHost } from '#client/credentials/plugin-process.ts';
import { systemClock } from '#lib/clock.ts';

// A reader that closes the pipe early is not an error, and must not end an upload whose progress it has read.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

// Handles signals only while a command waits for them. Otherwise a signal ends the process.
const untilInterrupted = () =>
  new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });

// A signal ends the process also while progress is shown, but the terminal is restored before.
const onInterrupt = (restore: () => void) => {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const listener = (signal: NodeJS.Signals) => {
    cancel();
    restore();
    process.kill(process.pid, signal);
  };
  const cancel = () => {
    for (const signal of signals) process.off(signal, listener);
  };
  for (const signal of signals) process.on(signal, listener);
  return cancel;
};

const launcher = process.env['VIRTCTL_LAUNCHER'];
// Set by the launcher, because node does not know the name under which it was called.
const name = process.env['VIRTCTL_CALLED_AS'] ?? 'virtctl';
const argv = process.argv.slice(2);

const code = await runVirtctl({
  // kubectl calls a program with this name for the completions of `kubectl virt`.
  argv: name.startsWith('kubectl_complete-') ? ['__complete', ...argv] : argv,
  program: name.startsWith('kubectl-') ? 'kubectl virt' : 'virtctl',
  env: process.env,
  home: homedir(),
  readFile: (path) => readFileSync(path, 'utf8'),
  plugins: createPluginHost({ env: process.env, hasTerminal: isatty(0), clock: systemClock }),
  terminal: { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr },
  clock: systemClock,
  programs: createPrograms(
    process.env['PATH'],
    launcher === undefined ? [process.execPath, ...process.argv.slice(1, 2)] : [launcher],
  ),
  untilInterrupted,
  onInterrupt,
});
process.exitCode = code;
// An open input would keep the process alive.
process.stdin.destroy();
