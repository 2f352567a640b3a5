/**
 * A real engine for tests: sqlite in a temporary directory, TLS on a free port of the loopback interface, admin
 * kubeconfig.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEngine } from '#engine/engine.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog, type Log } from '#lib/log.ts';

export interface Plane {
  readonly url: string;
  readonly kubeconfigPath: string;
  /** The directory of the engine, removed by `stop`. Tests may keep their own files in it. */
  readonly dir: string;
  stop(): Promise<void>;
}

export async function startPlane({ log = silentLog }: { readonly log?: Log } = {}): Promise<Plane> {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-plane-'));
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    const engine = await startEngine({
      dataDir: join(dir, 'data'),
      host: '127.0.0.1',
      port: 0,
      log,
      clock: systemClock,
    });
    return {
      url: engine.url,
      kubeconfigPath: engine.kubeconfigPath,
      dir,
      async stop() {
        await engine.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
