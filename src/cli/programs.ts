/** Other programs of the user's machine: viewers, ssh. */
import { spawn } from 'node:child_process';
import { constants as files } from 'node:fs';
import { access } from 'node:fs/promises';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { CommandError } from '#cli/flags.ts';
import { messageOf } from '#cli/message-of.ts';

export interface Programs {
  /** As the system finds it in PATH; a path is looked at itself. Undefined where there is none. */
  find(name: string): Promise<string | undefined>;
  /** With our terminal as its own; its exit code, 128 and more for a signal. Throws CommandError where it cannot start. */
  run(path: string, args: readonly string[], options?: { readonly signal?: AbortSignal }): Promise<number>;
  /** The words that call virtctl again. */
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
          reject(new CommandError(`Cannot run ${program}: ${messageOf(cause)}`, { cause }));
        });
        child.once('exit', (code, name) => resolve(code ?? 128 + (name === null ? 0 : constants.signals[name])));
      }),
  };
}

/** Throws CommandError where there is none of that name. */
export async function needProgram(programs: Programs, name: string): Promise<string> {
  const path = await programs.find(name);
  if (path === undefined) throw new CommandError(`could not find ${name} in $PATH: install it, or add it to PATH`);
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
