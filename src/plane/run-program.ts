/** Runs this very program as a child process, for Job pods with our own image. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { RunProgram } from '#node/pods/program.ts';

const CANNOT_START = 127;
const BY_SIGNAL = 128;

export function runProgram({ file, args }: { readonly file: string; readonly args: readonly string[] }): RunProgram {
  return (more, env) => {
    const child = spawn(file, [...args, ...more], { env: { ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const exited = new Promise<number>((resolve) => {
      child.once('error', () => resolve(CANNOT_START));
      // Not `exit`: what it wrote last may still be on its way then.
      child.once('close', (code, signal) => {
        resolve(signal === null ? (code ?? CANNOT_START) : BY_SIGNAL + constants.signals[signal]);
      });
    });
    return {
      exited,
      onOutput(listener) {
        child.stdout.on('data', listener);
        child.stderr.on('data', listener);
      },
      kill: (signal) => void child.kill(signal),
    };
  };
}
