/** A QMP monitor whose answers a test provides: the other end of a QmpClient, without a QEMU. */
import { duplexPair } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

export interface Command {
  readonly execute: string;
  readonly id: number;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/** Opens a client whose commands `answer` answers. A returned Error is a refusal. */
export async function openScriptedMonitor(clock: Clock, answer: (command: Command) => unknown): Promise<QmpClient> {
  const [ours, theirs] = duplexPair();
  theirs.on('data', (bytes: Buffer) => {
    for (const line of bytes.toString().trim().split('\n')) {
      const command = JSON.parse(line) as Command;
      const result = answer(command);
      const body =
        result instanceof Error ? { error: { class: 'GenericError', desc: result.message } } : { return: result };
      theirs.write(`${JSON.stringify({ ...body, id: command.id })}\n`);
    }
  });
  theirs.write('{"QMP": {}}\n');
  return QmpClient.open(ours, { clock });
}
