/**
 * The verbs `hotunplugDisk` and `hotunplugNic`: ask the guest to release a device and wait 30 seconds for that. The
 * guest may still release it later, after the caller has received an error.
 */
import { HOST_CODES, type HostAnswer, type HostStatus } from '#api/host-api.ts';
import { findHostDomain, findMapParameter, refuseCall } from '#node/host-api/answers.ts';
import type { DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { sourceKey, readDiskSource } from '#node/host-api/sent/disk-source.ts';
import { refreshDevices, type HostParts } from '#node/host-api/host-parts.ts';
import { isSameMac, type PluggableKind } from '#node/host-api/verbs/hotplug.ts';
import { quoteSentValue, readWord, type SentMap } from '#node/host-api/sent/sent-values.ts';
import { renderHostVm } from '#node/host-api/verbs/render-host-vm.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

const WAIT_MS = 30_000;
const ADVICE = 'change its spec, or use virtctl removevolume';

const KINDS: Readonly<
  Record<PluggableKind, { readonly key: string; readonly type: string; readonly failed: HostStatus }>
> = {
  disk: { key: 'drive', type: 'disk', failed: HOST_CODES.hotunplugDiskFailed },
  nic: { key: 'nic', type: 'interface', failed: HOST_CODES.hotunplugNicFailed },
};

export async function hotunplugDevice(
  kind: PluggableKind,
  parameters: SentMap,
  parts: HostParts,
  { signal }: { readonly signal: AbortSignal },
): Promise<HostAnswer> {
  const { key, type, failed } = KINDS[kind];
  const found = findHostDomain(parameters, parts, { failed, advice: ADVICE });
  if (found.refusal !== undefined) return found.refusal;
  const sent = findMapParameter(parameters, key, failed);
  if (sent.refusal !== undefined) return sent.refusal;
  const { id } = found.domain;
  const unplug = await parts.turns.run(id, () => requestUnplug(id, type, sent.map, parts));
  if (unplug.error !== undefined) return refuseCall(failed, `${key}: ${unplug.error}`);
  const { deviceId } = unplug;
  // Outside of the queue, so that other calls for this VM are served meanwhile.
  if (!(await waitForRelease(id, deviceId, parts, signal))) {
    return refuseCall(
      failed,
      `the guest did not release ${deviceId} within ${WAIT_MS / 1000} seconds; it may do so later`,
    );
  }
  return await parts.turns.run(id, async () => {
    const record = parts.vms.get(id);
    if (record !== undefined && !isInGuest(id, deviceId, parts)) {
      await parts.vms.save({ ...record, entries: record.entries.filter((entry) => entry.id !== deviceId) });
    }
    await refreshDevices(id, parts);
    const domain = parts.hypervisor.get(id);
    const hostVm = domain && renderHostVm(domain, parts);
    return { status: HOST_CODES.done, ...(hostVm === undefined ? {} : { vmList: [hostVm] }) };
  });
}

async function requestUnplug(
  id: string,
  type: string,
  sent: SentMap,
  parts: HostParts,
): Promise<{ readonly deviceId: string; readonly error?: undefined } | { readonly error: string }> {
  const { hypervisor, vms, images } = parts;
  const matches = buildMatcher(type, sent, images.dir);
  const entry = vms
    .get(id)
    ?.entries.find(
      (candidate) => candidate.device.type === type && matches(candidate) && isInGuest(id, candidate.id, parts),
    );
  if (entry === undefined) return { error: `${quoteSentValue(sent)} is not in the guest` };
  try {
    await hypervisor.unplug(id, entry.id);
    return { deviceId: entry.id };
  } catch (error) {
    if (!(error instanceof HypervisorError)) throw error;
    return { error: error.message };
  }
}

/** Identifies a disk by its deviceId or its source, a network card by its deviceId or its MAC address. */
function buildMatcher(type: string, sent: SentMap, imagesDir: string): (entry: DeviceEntry) => boolean {
  const deviceId = readWord(sent['deviceId']);
  if (deviceId !== undefined) return ({ device }) => device.deviceId === deviceId;
  if (type === 'interface') return ({ device }) => isSameMac(device['macAddr'], sent['macAddr']);
  const key = sourceKey(readDiskSource(sent, imagesDir));
  return ({ device }) => key !== undefined && sourceKey(readDiskSource(device, imagesDir)) === key;
}

function isInGuest(id: string, deviceId: string, { hypervisor }: HostParts): boolean {
  if (hypervisor.get(id)?.current.state === 'ended') return false;
  return hypervisor.inspect(id)?.definition.devices.some((device) => device.id === deviceId) === true;
}

/** Resolves to whether the guest released the device before the timeout and before the caller gave up. */
function waitForRelease(id: string, deviceId: string, parts: HostParts, signal: AbortSignal): Promise<boolean> {
  const { hypervisor, clock } = parts;
  return new Promise((resolve) => {
    const finish = (isReleased: boolean) => {
      unsubscribe();
      stopTimer();
      signal.removeEventListener('abort', giveUp);
      resolve(isReleased);
    };
    const giveUp = () => finish(false);
    const unsubscribe = hypervisor.onChange((changed) => {
      if (changed === id && !isInGuest(id, deviceId, parts)) finish(true);
    });
    const stopTimer = clock.after(WAIT_MS, giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    if (!isInGuest(id, deviceId, parts)) finish(true);
    else if (signal.aborted) giveUp();
  });
}
