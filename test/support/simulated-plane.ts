/** The real program with VMs on simulated nodes, each node in its own process, as `selfsame up` starts them. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeWithProcesses } from '#lib/files/owned-dir.ts';
import type { Plane } from '#test/support/plane.ts';
import { startServer } from '#test/support/server-process.ts';

export interface SimulatedPlaneOptions {
  readonly nodes: number;
  /** `qemu`: nodes with real guests. */
  readonly hypervisor?: 'fake' | 'qemu';
}

export async function startSimulatedPlane({ nodes, hypervisor = 'fake' }: SimulatedPlaneOptions): Promise<Plane> {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-plane-'));
  const ends: (() => unknown)[] = [];
  const cleanUp = async () => {
    for (const end of ends) end();
    // Guests outlive their plane if a test ends before them.
    await removeWithProcesses(dir);
  };
  try {
    const dataDir = join(dir, 'data');
    const command = ['up', '--hypervisor', hypervisor, '--nodes', String(nodes)];
    const server = await startServer({ after: (end) => ends.push(end) }, { dataDir, command });
    return {
      url: server.access().server,
      kubeconfigPath: join(dataDir, 'kubeconfig'),
      dir,
      async stop() {
        // SIGTERM instead of SIGKILL: the server then also stops its nodes.
        await server.kill('SIGTERM');
        await cleanUp();
      },
    };
  } catch (error) {
    await cleanUp();
    throw error;
  }
}
