/** Whether somebody listens where a process of ours said that it does. */
import { connect } from 'node:net';
import type { Clock } from '#lib/clock.ts';

const PROBE_MS = 1000;

/**
 * True only where the machine itself says that nobody listens there: the process is gone. No answer says nothing, for
 * another may reach what we do not.
 */
export function isRefused(
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
