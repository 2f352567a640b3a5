/** Runs this program as a child process of the agent. Only this module starts processes for pods. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { ProgramProcess, RunProgram } from '#node/pods/program.ts';

interface NativeProgram {
  /** Command that starts this program: node with its main file, or a launcher. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
}

const CANNOT_START_EXIT_CODE = 127;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Returns a function that starts processes. They get the variables of the pod, but none of the agent's own environment. */
export function nativeProgram({ command, cwd }: NativeProgram): RunProgram {
  const [file, ...fixedArgs] = command;
  return (args, env): ProgramProcess => {
    const child = spawn(file, [...fixedArgs, ...args], {
      cwd,
      env: { ...env, PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { promise: exited, resolve } = Promise.withResolvers<number>();
    const listeners: ((chunk: Buffer) => void)[] = [];
    const forward = (chunk: Buffer): void => {
      for (const listener of listeners) listener(chunk);
    };
    child.stdout.on('data', forward);
    child.stderr.on('data', forward);
    child.on('error', (error) => {
      forward(Buffer.from(`Cannot start the program: ${error.message}\n`));
      resolve(CANNOT_START_EXIT_CODE);
    });
    // `close` instead of `exit`, so that all output has been read.
    child.on('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
    return {
      exited,
      onOutput: (listener) => void listeners.push(listener),
      kill: (signal) => void child.kill(signal),
    };
  };
}
