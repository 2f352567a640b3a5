/** Checks whether a controllers process still listens at its address. */
import { connect } from 'node:net';
import type { Clock } from '#lib/clock.ts';

const PROBE_MS = 1000;

/**
 * Reports whether the machine refuses connections to the port: then the process has ended. A timeout does not count,
 * because other machines may still reach the process.
 */
export function isConnectionRefused(
  { address, port }: { readonly address: string; readonly port: number },
  { clock }: { readonly clock: Clock },
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const done = (refused: boolean) => {
      stopTimer();
      socket.destroy();
      resolve(refused);
    };
    const stopTimer = clock.after(PROBE_MS, () => done(false));
    socket.once('connect', () => done(false));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => done(code === 'ECONNREFUSED'));
  });
}
