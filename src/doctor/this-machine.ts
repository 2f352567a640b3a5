/** The machine that this process runs on. `path` is the PATH of the caller. */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readFile, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import type { ExaminedMachine } from '#doctor/machine.ts';
import { isAlive } from '#lib/files/owned-dir.ts';

const RUN_TIMEOUT_MS = 10_000;
const CONNECT_MS = 2000;
const OUTPUT_BYTES = 64 * 1024;
/** The directories in which node agents look for programs, regardless of PATH. */
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export const thisMachine = (path: string): ExaminedMachine => ({
  isRoot: process.getuid?.() === 0,
  nodeVersion: process.version,

  run(program, args, calledBy) {
    const env = { PATH: calledBy === 'agent' ? SYSTEM_PATH : path, LC_ALL: 'C' };
    const options = { timeout: RUN_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES, env };
    return new Promise((resolve) => {
      execFile(program, [...args], options, (error, stdout, stderr) => {
        const { code } = (error ?? {}) as NodeJS.ErrnoException;
        if (code === 'ENOENT') resolve(undefined);
        else
          resolve({
            text: `${stdout}\n${stderr}\n${code === 'EACCES' ? 'permission denied' : ''}`,
            works: error === null,
          });
      });
    });
  },

  async file(path) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) return undefined;
    const isWritable = await access(path, constants.R_OK | constants.W_OK).then(
      () => true,
      () => false,
    );
    return { isDirectory: found.isDirectory(), isWritable };
  },

  text: (path) => readFile(path, 'utf8').catch(() => ''),

  async freeBytes(path) {
    const found = await statfs(path).catch(() => undefined);
    return found === undefined ? undefined : found.bavail * found.bsize;
  },

  isAlive,

  isTaken(host, port) {
    return new Promise((resolve) => {
      const socket = connect({ host, port, timeout: CONNECT_MS });
      const finish = (taken: boolean) => {
        socket.destroy();
        resolve(taken);
      };
      socket.once('connect', () => finish(true));
      socket.once('timeout', () => finish(true));
      socket.once('error', () => finish(false));
    });
  },
});
