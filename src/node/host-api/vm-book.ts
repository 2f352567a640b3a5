/**
 * What was sent about each VM of the host API, so that it can be told back: the guest itself is the hypervisor's. One file
 * for each, written before the guest begins and before a device is plugged in; what no guest stands behind is forgotten at
 * the next start of the agent.
 */
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '#kube/meta.ts';
import type { DeviceEntry } from '#node/host-api/device-entries.ts';
import type { SentMap } from '#node/host-api/sent-values.ts';
import { vmIdOf } from '#node/host-api/vm-conf.ts';

export interface HostVmRecord {
  readonly vmId: string;
  readonly vmName: string;
  /** As it was sent, without its devices. */
  readonly sent: SentMap;
  readonly entries: readonly DeviceEntry[];
}

const SUFFIX = '.json';

export class VmBook {
  readonly #dir: string;
  readonly #records = new Map<string, HostVmRecord>();

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** `isThere`: whether the hypervisor has a domain of this id. */
  static async open(dir: string, isThere: (vmId: string) => boolean): Promise<VmBook> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const book = new VmBook(dir);
    for (const file of await readdir(dir)) {
      const vmId = file.endsWith(SUFFIX) ? vmIdOf(file.slice(0, -SUFFIX.length)) : undefined;
      const record = vmId !== undefined && isThere(vmId) ? await read(join(dir, file)) : undefined;
      if (vmId === undefined || record === undefined) await rm(join(dir, file), { force: true });
      else book.#records.set(vmId, record);
    }
    return book;
  }

  get(vmId: string): HostVmRecord | undefined {
    return this.#records.get(vmId);
  }

  /** On disk when it resolves: the old one or the new one, whenever we are killed. */
  async save(record: HostVmRecord): Promise<void> {
    const file = this.#fileOf(record.vmId);
    {
      await using handle = await open(`${file}.new`, 'w', 0o600);
      await handle.writeFile(JSON.stringify(record));
      await handle.sync();
    }
    await rename(`${file}.new`, file);
    this.#records.set(record.vmId, record);
  }

  /** Fine where there is none. */
  async remove(vmId: string): Promise<void> {
    this.#records.delete(vmId);
    await rm(this.#fileOf(vmId), { force: true });
  }

  #fileOf(vmId: string): string {
    return join(this.#dir, `${vmId}${SUFFIX}`);
  }
}

/** Undefined for what is not ours; what we wrote is whole, because it was renamed into its place. */
async function read(file: string): Promise<HostVmRecord | undefined> {
  try {
    const record: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isRecord(record) && Array.isArray(record['entries']) ? (record as unknown as HostVmRecord) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
