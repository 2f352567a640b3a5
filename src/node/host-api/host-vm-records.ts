/**
 * Records what was sent about each VM of the host API, so that `list` can report it. The hypervisor owns the guest
 * itself. One file per VM, written before the guest starts and before a device is plugged in. The next start of the
 * agent removes records without a guest.
 */
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '#kube/meta.ts';
import type { DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import type { SentMap } from '#node/host-api/sent/sent-values.ts';
import { readVmId } from '#node/host-api/sent/vm-conf.ts';

export interface HostVmRecord {
  readonly vmId: string;
  readonly vmName: string;
  /** The parameters as they were sent, without the devices. */
  readonly sent: SentMap;
  readonly entries: readonly DeviceEntry[];
}

const SUFFIX = '.json';

export class HostVmRecords {
  readonly #dir: string;
  readonly #records = new Map<string, HostVmRecord>();

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** Reads the records and removes those for which `exists`, which asks the hypervisor for a domain, is false. */
  static async open(dir: string, exists: (vmId: string) => boolean): Promise<HostVmRecords> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const records = new HostVmRecords(dir);
    for (const file of await readdir(dir)) {
      const vmId = file.endsWith(SUFFIX) ? readVmId(file.slice(0, -SUFFIX.length)) : undefined;
      const record = vmId !== undefined && exists(vmId) ? await readRecord(join(dir, file)) : undefined;
      if (vmId === undefined || record === undefined) await rm(join(dir, file), { force: true });
      else records.#records.set(vmId, record);
    }
    return records;
  }

  get(vmId: string): HostVmRecord | undefined {
    return this.#records.get(vmId);
  }

  /** Replaces the record atomically; it is on disk when this resolves. */
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

  /** Does nothing if there is no record. */
  async remove(vmId: string): Promise<void> {
    this.#records.delete(vmId);
    await rm(this.#fileOf(vmId), { force: true });
  }

  #fileOf(vmId: string): string {
    return join(this.#dir, `${vmId}${SUFFIX}`);
  }
}

/**
 * Returns undefined for a file that is not a record. Our own files are always complete, because they are renamed into
 * place.
 */
async function readRecord(file: string): Promise<HostVmRecord | undefined> {
  try {
    const record: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isRecord(record) && Array.isArray(record['entries']) ? (record as unknown as HostVmRecord) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
