/**
 * Simulated networks of simulated guests: only the state of each guest, for the next process. Tests look at the states.
 */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '#lib/files/private-file.ts';
import { parseInterfaceAddress, formatIpAddress } from '#lib/ip-address.ts';
import { PodNetworkError, type PodNetwork, type PodNetworks, type TapRequest } from '#node/network/pod-networks.ts';

interface FakeNetwork extends PodNetwork {
  readonly isSilent: boolean;
}

/** The networks of a simulated machine, which outlive the process of an agent. */
export class FakeNetworkHost {
  /** The states of all guests by domain id. */
  readonly states = new Map<string, FakeNetwork>();
  /** Called after each change of a guest's state. */
  onChange: (id: string) => void = () => {};
  #holder: object | undefined;

  /** Makes a process the one that may change the networks: those before it have been killed. */
  acquire(process: object): void {
    this.#holder = process;
  }

  assertHeldBy(process: object): void {
    if (this.#holder !== process) throw new PodNetworkError('the process of the agent was killed');
  }
}

interface FakeNetworksOptions {
  /** The directory with the states for the next process; without it, they are only in memory. */
  readonly dir?: string;
  readonly host?: FakeNetworkHost;
}

const SUFFIX = '.json';
const MTU = 1450;

export function createFakeNetworks({ dir, host = new FakeNetworkHost() }: FakeNetworksOptions = {}): PodNetworks {
  const process = {};
  host.acquire(process);
  const { states } = host;
  const set = async (id: string, network: FakeNetwork) => {
    host.assertHeldBy(process);
    states.set(id, network);
    host.onChange(id);
    if (dir !== undefined) await writePrivateFile(join(dir, `${id}${SUFFIX}`), JSON.stringify(network));
  };
  const change = async (id: string, isSilent: boolean) => {
    const network = states.get(id);
    if (network === undefined) throw new PodNetworkError(`the guest ${id} has no network`);
    if (network.isSilent !== isSilent) await set(id, { ...network, isSilent });
  };
  return {
    async adopt() {
      if (dir === undefined) return;
      await mkdir(dir, { recursive: true });
      for (const name of await readdir(dir)) {
        if (!name.endsWith(SUFFIX)) continue;
        const text = await readFile(join(dir, name), 'utf8');
        states.set(name.slice(0, -SUFFIX.length), JSON.parse(text) as FakeNetwork);
      }
    },
    async setDefaultNetwork() {},
    async attach({ id, interfaces }, { isSilent, signal }) {
      signal?.throwIfAborted();
      const network = { namespace: `simulated/${id}`, interfaces: interfaces.map(simulate), isSilent };
      await set(id, network);
      return network;
    },
    async plug(id, tap) {
      const network = states.get(id);
      if (network === undefined) throw new PodNetworkError(`the guest ${id} has no network`);
      const others = network.interfaces.filter(({ podInterface }) => podInterface !== tap.attachment.podInterface);
      await set(id, { ...network, interfaces: [...others, simulate(tap)] });
    },
    async unplug(id, podInterface) {
      const network = states.get(id);
      if (network === undefined) return;
      const interfaces = network.interfaces.filter((entry) => entry.podInterface !== podInterface);
      await set(id, { ...network, interfaces });
    },
    activate: (id) => change(id, false),
    silence: (id) => change(id, true),
    async detach(id) {
      host.assertHeldBy(process);
      states.delete(id);
      if (dir !== undefined) await rm(join(dir, `${id}${SUFFIX}`), { force: true });
    },
    get: (id) => states.get(id),
    list: () => [...states.keys()],
    async close() {},
  };
}

function simulate({ attachment: { podInterface, addresses = [] } }: TapRequest): PodNetwork['interfaces'][number] {
  const plain = addresses.map((text) => formatIpAddress(parseInterfaceAddress(text).address));
  return { podInterface, addresses: plain, mtu: MTU };
}
