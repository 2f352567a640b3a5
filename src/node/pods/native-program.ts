/** Runs this program as a child process of the agent: the one place that starts processes for pods. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { ProgramProcess, RunProgram } from '#node/pods/program.ts';

export interface NativeProgram {
  /** How this program is started: node and its main file, or a launcher. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
}

const CANNOT_START = 127;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Nothing of the agent's own environment is passed on: only what the pod says. */
export function nativeProgram({ command, cwd }: NativeProgram): RunProgram {
  const [file, ...fixed] = command;
  return (args, env): ProgramProcess => {
    const child = spawn(file, [...fixed, ...args], { cwd, env: { ...env, PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
    const { promise: exited, resolve } = Promise.withResolvers<number>();
    const listeners: ((chunk: Buffer) => void)[] = [];
    const tell = (chunk: Buffer): void => {
      for (const listener of listeners) listener(chunk);
    };
    child.stdout.on('data', tell);
    child.stderr.on('data', tell);
    child.on('error', (error) => {
      tell(Buffer.from(`Cannot start the program: ${error.message}\n`));
      resolve(CANNOT_START);
    });
    // Not `exit`: what it said last is read by then.
    child.on('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
    return {
      exited,
      onOutput: (listener) => void listeners.push(listener),
      kill: (signal) => void child.kill(signal),
    };
  };
}
