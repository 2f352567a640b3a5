/** A QMP monitor whose answers a test provides: the other end of a QmpClient, without a QEMU. */
import { duplexPair } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

export interface Command {
  readonly execute: string;
  readonly id: number;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/** The answer to a command that is never answered. */
export const NO_ANSWER = Symbol('no answer');

/** A refusal that says that the device does not exist. */
export class DeviceNotFound extends Error {
  override readonly name = 'DeviceNotFound';
}

/** Opens a client whose commands `answer` answers. A returned Error is a refusal. */
export async function openScriptedMonitor(clock: Clock, answer: (command: Command) => unknown): Promise<QmpClient> {
  const [ours, theirs] = duplexPair();
  theirs.on('data', (bytes: Buffer) => {
    for (const line of bytes.toString().trim().split('\n')) {
      const command = JSON.parse(line) as Command;
      const result = answer(command);
      if (result === NO_ANSWER) continue;
      theirs.write(`${JSON.stringify({ ...toBody(result), id: command.id })}\n`);
    }
  });
  theirs.write('{"QMP": {}}\n');
  return QmpClient.open(ours, { clock });
}

function toBody(result: unknown): object {
  if (!(result instanceof Error)) return { return: result };
  const errorClass = result instanceof DeviceNotFound ? result.name : 'GenericError';
  return { error: { class: errorClass, desc: result.message } };
}
