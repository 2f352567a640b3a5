/** Removes the networks of a plane from this machine: the namespaces of its guests, and its default network. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import type { Stored } from '#kube/meta.ts';
import { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import { DEFAULT_NETWORK_FILE } from '#node/network/linux/linux-pod-networks.ts';
import { planNetwork } from '#node/network/linux/network-plan.ts';
import { PodNamespaces } from '#node/network/linux/pod-namespace.ts';

/** Files of the default network, for all agents of this machine; a directory for each network. */
export const NETWORKS_DIR = '/run/selfsame/networks';

/** Ends the guests of the plane, too. Its agents must not run. Does nothing where there is nothing. */
export async function removeNetworks(dataDir: string): Promise<void> {
  const nodesDir = join(dataDir, 'nodes');
  for (const name of await readdir(nodesDir).catch(() => [])) {
    const nodeDir = join(nodesDir, name);
    const namespaces = new PodNamespaces(nodeDir);
    for (const id of await namespaces.list()) {
      if (await namespaces.exists(id)) await namespaces.kill(id);
      await namespaces.delete(id);
    }
    const text = await readFile(join(nodeDir, DEFAULT_NETWORK_FILE), 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const plan = planNetwork(JSON.parse(text) as Stored<GuestNetwork>);
    await new LinuxHostSide({ plan, dir: join(NETWORKS_DIR, plan.key) }).remove();
  }
}
