/** Runs other programs of the user's machine, such as ssh and VNC viewers. */
import { spawn } from 'node:child_process';
import { constants as files } from 'node:fs';
import { access } from 'node:fs/promises';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { CommandError } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';

export interface Programs {
  /** Returns the path of a program in PATH, or of a path itself; undefined if it does not exist. */
  find(name: string): Promise<string | undefined>;
  /** Runs a program in this terminal and returns its exit code; 128 + n for signal n. Throws CommandError if it cannot start. */
  run(path: string, args: readonly string[], options?: { readonly signal?: AbortSignal }): Promise<number>;
  /** The command that runs virtctl again. */
  readonly self: readonly string[];
  readonly platform: NodeJS.Platform;
}

export function createPrograms(path: string | undefined, self: readonly string[]): Programs {
  return {
    self,
    platform: process.platform,
    async find(name) {
      const places = name.includes('/') ? [name] : (path ?? '').split(delimiter).map((folder) => join(folder, name));
      for (const place of places) {
        if (await isExecutable(place)) return place;
      }
      return undefined;
    },
    run: (program, args, { signal } = {}) =>
      new Promise((resolve, reject) => {
        const child = spawn(program, args, { stdio: 'inherit', ...(signal === undefined ? {} : { signal }) });
        child.once('error', (cause) => {
          if (cause.name === 'AbortError') return;
          reject(new CommandError(`Cannot run ${program}: ${errorMessage(cause)}`, { cause }));
        });
        child.once('exit', (code, name) => resolve(code ?? 128 + (name === null ? 0 : constants.signals[name])));
      }),
  };
}

/** Returns the path of a program. Throws CommandError if it does not exist. */
export async function requireProgram(programs: Programs, name: string): Promise<string> {
  const path = await programs.find(name);
  if (path === undefined) throw new CommandError(`Cannot find ${name} in PATH: install it, or add it to PATH`);
  return path;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, files.X_OK);
    return true;
  } catch {
    return false;
  }
}
