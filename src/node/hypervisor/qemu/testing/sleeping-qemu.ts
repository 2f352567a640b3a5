/** The directory and process of a guest without a QEMU: `sleep` is the process, and the test answers the monitor. */
import { mkdtemp, open, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { spawnDetached, type DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { waitWithClock } from '#node/hypervisor/qemu/testing/wait-with-clock.ts';

export interface SleepingQemu {
  readonly dir: DomainDir;
  readonly qemu: DetachedProcess;
  readonly clock: FakeClock;
  /** All connections to the monitor so far; the last one is the current one. */
  readonly sockets: Socket[];
  /** Advances the clock until the condition holds; the test's timeout is the limit. */
  until(isSo: () => boolean): Promise<void>;
}

/** Runs the test, and removes everything after it. `answer` returns the answer to a command, or undefined for none. */
export async function withSleepingQemu(
  answer: (command: string) => unknown,
  run: (scene: SleepingQemu) => Promise<void>,
): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-sleeping-'));
  const dir = new DomainDir(root, 'a-uid');
  await dir.prepare(undefined);
  const clock = new FakeClock();
  const log = await open(join(root, 'log'), 'a');
  const options = { command: 'sleep', args: ['60'], cwd: root, user: undefined, logFd: log.fd };
  const qemu = await spawnDetached(options, clock);
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write('{"QMP": {}}\n');
    socket.on('data', (bytes: Buffer) => {
      for (const line of bytes.toString().trim().split('\n')) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        const result = answer(execute);
        if (result !== undefined) socket.write(`${JSON.stringify({ return: result, id })}\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(join(dir.run, 'qmp.sock'), resolve));
  try {
    await run({ dir, qemu, clock, sockets, until: waitWithClock(clock) });
  } finally {
    await qemu.kill('SIGKILL');
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await log.close();
    await rm(root, { recursive: true });
  }
}
