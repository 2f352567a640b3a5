/**
 * The state of the network of one guest, in a file: written before each step, so that a later process finds
 * everything that an earlier one may have made.
 *
 *   attaching ──► attached ──► detaching ──► (no file)
 */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '#kube/meta.ts';
import { replaceFileAtomically } from '#lib/files/replace-file-atomically.ts';
import { formatIpAddress, parseInterfaceAddress, parseIpAddress } from '#lib/ip-address.ts';
import type { InterfaceFacts } from '#node/network/linux/interface-plan.ts';
import type { NetworkRequest } from '#node/network/pod-networks.ts';

export interface PodRecord {
  readonly version: 1;
  readonly state: 'attaching' | 'attached' | 'detaching';
  readonly isSilent: boolean;
  readonly request: NetworkRequest;
  /** The interfaces that are connected. */
  readonly interfaces: readonly ConnectedInterface[];
}

export interface ConnectedInterface {
  readonly podInterface: string;
  /** The end of the veth pair in the host's namespace; only for the default network. */
  readonly hostInterface?: string;
  /** True if the interface receives only frames to its own MAC address (bindings/own-mac-port.ts). */
  readonly hasOwnMac?: boolean;
  readonly facts: StoredFacts;
}

/** InterfaceFacts as text. */
interface StoredFacts {
  readonly addresses: readonly string[];
  readonly gateways: readonly string[];
  readonly nameservers: readonly string[];
  readonly mtu: number;
  readonly gatewayMac?: string;
}

export function storeFacts({ addresses, gateways, nameservers, ...others }: InterfaceFacts): StoredFacts {
  return {
    ...others,
    addresses: addresses.map(({ address, prefix }) => `${formatIpAddress(address)}/${prefix}`),
    gateways: gateways.map(formatIpAddress),
    nameservers: nameservers.map(formatIpAddress),
  };
}

export function loadFacts({ addresses, gateways, nameservers, ...others }: StoredFacts): InterfaceFacts {
  return {
    ...others,
    addresses: addresses.map((text) => parseInterfaceAddress(text)),
    gateways: gateways.map((text) => parseIpAddress(text)),
    nameservers: nameservers.map((text) => parseIpAddress(text)),
  };
}

const SUFFIX = '.json';

export class PodRecords {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Reads all records. `damaged` has the ids of those that cannot be read. */
  async readAll(): Promise<{ records: Map<string, PodRecord>; damaged: string[] }> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const records = new Map<string, PodRecord>();
    const damaged: string[] = [];
    for (const name of await readdir(this.#directory)) {
      if (!name.endsWith(SUFFIX)) continue;
      const id = name.slice(0, -SUFFIX.length);
      const record = parseRecord(await readFile(join(this.#directory, name), 'utf8'));
      if (record?.request.id === id) records.set(id, record);
      else damaged.push(id);
    }
    return { records, damaged };
  }

  async write(record: PodRecord): Promise<void> {
    await replaceFileAtomically(this.#path(record.request.id), JSON.stringify(record));
  }

  async remove(id: string): Promise<void> {
    await rm(this.#path(id), { force: true });
  }

  #path(id: string): string {
    return join(this.#directory, id + SUFFIX);
  }
}

/** Only this module writes the file, so its version vouches for the rest. */
function parseRecord(text: string): PodRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && value['version'] === 1 && isRecord(value['request']) && Array.isArray(value['interfaces'])
      ? (value as unknown as PodRecord)
      : undefined;
  } catch {
    return undefined;
  }
}
