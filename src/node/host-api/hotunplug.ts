/**
 * `hotunplugDisk` and `hotunplugNic`: the guest is asked to let go of a device, and has half a minute to do so. What it
 * lets go later is gone all the same, although the caller was told otherwise.
 */
import { HOST_CODES, type HostAnswer, type HostStatus } from '#api/host-api.ts';
import { domainOf, mapIn, refused } from '#node/host-api/answers.ts';
import type { DeviceEntry } from '#node/host-api/device-entries.ts';
import { sourceKey, sourceOf } from '#node/host-api/disk-source.ts';
import { learnNow, type HostParts } from '#node/host-api/host-parts.ts';
import { isSameMac, type Pluggable } from '#node/host-api/hotplug.ts';
import { shown, wordOf, type SentMap } from '#node/host-api/sent-values.ts';
import { toldVm } from '#node/host-api/told-vm.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

const WAIT_MS = 30_000;
const INSTEAD = 'change its spec, or use virtctl removevolume';

const SORTS: Readonly<Record<Pluggable, { readonly key: string; readonly type: string; readonly failed: HostStatus }>> =
  {
    disk: { key: 'drive', type: 'disk', failed: HOST_CODES.hotunplugDiskFailed },
    nic: { key: 'nic', type: 'interface', failed: HOST_CODES.hotunplugNicFailed },
  };

export async function hotunplug(
  sort: Pluggable,
  parameters: SentMap,
  parts: HostParts,
  { signal }: { readonly signal: AbortSignal },
): Promise<HostAnswer> {
  const { key, type, failed } = SORTS[sort];
  const found = domainOf(parameters, parts, { failed, instead: INSTEAD });
  if (found.refusal !== undefined) return found.refusal;
  const sent = mapIn(parameters, key, failed);
  if (sent.refusal !== undefined) return sent.refusal;
  const { id } = found.domain;
  const asked = await parts.turns.take(id, () => ask(id, type, sent.map, parts));
  if (asked.fault !== undefined) return refused(failed, `${key}: ${asked.fault}`);
  const { deviceId } = asked;
  // Others have their turn meanwhile.
  if (!(await hasLetGo(id, deviceId, parts, signal))) {
    return refused(failed, `the guest has not let go of ${deviceId} in ${WAIT_MS / 1000} seconds; it may do so later`);
  }
  return await parts.turns.take(id, async () => {
    const record = parts.vms.get(id);
    if (record !== undefined && !isInGuest(id, deviceId, parts)) {
      await parts.vms.save({ ...record, entries: record.entries.filter((entry) => entry.id !== deviceId) });
    }
    await learnNow(id, parts);
    const domain = parts.hypervisor.get(id);
    const told = domain && toldVm(domain, parts);
    return { status: HOST_CODES.done, ...(told === undefined ? {} : { vmList: [told] }) };
  });
}

async function ask(
  id: string,
  type: string,
  sent: SentMap,
  parts: HostParts,
): Promise<{ readonly deviceId: string; readonly fault?: undefined } | { readonly fault: string }> {
  const { hypervisor, vms, images } = parts;
  const matches = matcher(type, sent, images.dir);
  const entry = vms
    .get(id)
    ?.entries.find(
      (candidate) => candidate.device.type === type && matches(candidate) && isInGuest(id, candidate.id, parts),
    );
  if (entry === undefined) return { fault: `${shown(sent)} is not in the guest` };
  try {
    await hypervisor.unplug(id, entry.id);
    return { deviceId: entry.id };
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    return { fault: error.message };
  }
}

/** A disk by what is in it or by its deviceId, a network card by its MAC address or its deviceId. */
function matcher(type: string, sent: SentMap, imagesDir: string): (entry: DeviceEntry) => boolean {
  const deviceId = wordOf(sent['deviceId']);
  if (deviceId !== undefined) return ({ device }) => device.deviceId === deviceId;
  if (type === 'interface') return ({ device }) => isSameMac(device['macAddr'], sent['macAddr']);
  const key = sourceKey(sourceOf(sent, imagesDir));
  return ({ device }) => key !== undefined && sourceKey(sourceOf(device, imagesDir)) === key;
}

function isInGuest(id: string, deviceId: string, { hypervisor }: HostParts): boolean {
  if (hypervisor.get(id)?.current.state === 'ended') return false;
  return hypervisor.inspect(id)?.definition.devices.some((device) => device.id === deviceId) === true;
}

/** False where it takes too long, or nobody waits any more. */
function hasLetGo(id: string, deviceId: string, parts: HostParts, signal: AbortSignal): Promise<boolean> {
  const { hypervisor, clock } = parts;
  return new Promise((resolve) => {
    const end = (hasGone: boolean) => {
      leave();
      stopTimer();
      signal.removeEventListener('abort', giveUp);
      resolve(hasGone);
    };
    const giveUp = () => end(false);
    const leave = hypervisor.onChange((changed) => {
      if (changed === id && !isInGuest(id, deviceId, parts)) end(true);
    });
    const stopTimer = clock.after(WAIT_MS, giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    if (!isInGuest(id, deviceId, parts)) end(true);
    else if (signal.aborted) giveUp();
  });
}
