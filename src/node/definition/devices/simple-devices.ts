/** Defines the devices that need little more than an id: those of the machine itself, and those without options. Pure. */
import { VIDEO_ID, allowsVideo, asksForVideo } from '#api/devices/fixed-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { pciAddressToMap } from '#api/devices/pci-address.ts';
import type { Devices } from '#api/domain/devices.ts';
import { VIDEO_TYPES, type VideoType } from '#api/domain/video.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type {
  BalloonDevice,
  DiskDevice,
  RngDevice,
  RootPort,
  ScsiController,
  SerialDevice,
  TpmDevice,
  VideoDevice,
} from '#node/hardware/domain-definition.ts';
import { rootPortAddress, rootPortId } from '#api/devices/root-ports.ts';

/** Defines the root ports for pluggable devices, used and spare ones. */
export function defineRootPorts(count: number): RootPort[] {
  return Array.from({ length: count }, (_, index) => ({
    type: 'root-port',
    id: rootPortId(index),
    index,
    address: pciAddressToMap(rootPortAddress(index)),
  }));
}

const SCSI_ID = 'scsi0';

/**
 * Defines the SCSI controller. A guest gets it on its first start, so that disks can be hotplugged. Later it has the
 * controller if SCSI disks need it or if the record has it: hardware neither appears nor vanishes unasked.
 */
export function defineScsiController(
  disks: readonly DiskDevice[],
  { rows, complete = false }: { readonly rows: readonly LearnedDevice[]; readonly complete?: boolean },
  queues?: number,
): UnplacedDevice<ScsiController>[] {
  const isNeeded = disks.some(({ bus }) => bus === 'scsi');
  const isFirst = rows.length === 0 && !complete;
  const isWanted = isFirst || isNeeded || rows.some(({ id }) => id === SCSI_ID);
  const device: ScsiController = { type: 'scsi-controller', id: SCSI_ID, ...(queues !== undefined && { queues }) };
  return isWanted ? [{ device, field: 'spec.domain.devices.disks' }] : [];
}

/**
 * Defines a TPM 2.0 with a CRB interface for both kinds of firmware, so that a change of firmware does not change the
 * TPM (measured: guests find it with SeaBIOS as well as with OVMF).
 */
export function defineTpm(devices: Devices): TpmDevice[] {
  if (!hasTpm(devices)) return [];
  return [{ type: 'tpm', id: 'tpm0', model: 'crb', ...(requestsPersistentTpm(devices) && { persistent: true }) }];
}

export function requestsPersistentTpm(devices: Devices): boolean {
  return hasTpm(devices) && devices.tpm?.persistent === true;
}

function hasTpm({ tpm }: Devices): boolean {
  return tpm !== undefined && tpm.enabled !== false;
}

/** Defines a source of entropy if the spec asks for one. */
export function defineRng({ rng }: Devices): UnplacedDevice<RngDevice>[] {
  return rng === undefined ? [] : [{ device: { type: 'rng', id: 'rng0' }, field: 'spec.domain.devices.rng' }];
}

/** Defines the memory balloon, unless the spec disables it. */
export function defineBalloon({ autoattachMemBalloon }: Devices): UnplacedDevice<BalloonDevice>[] {
  if (autoattachMemBalloon === false) return [];
  return [{ device: { type: 'balloon', id: 'balloon0' }, field: 'spec.domain.devices.autoattachMemBalloon' }];
}

/** Defines the serial console, which is the first serial port, unless the spec disables it. */
export function defineSerial({ autoattachSerialConsole }: Devices): SerialDevice[] {
  return autoattachSerialConsole === false ? [] : [{ type: 'serial', id: 'serial0' }];
}

/**
 * Defines the video card, and with it the display. As in KubeVirt, a guest has one unless its spec disables it. A guest
 * that has run without a card gets one only if its spec asks for it, because hardware does not appear unasked (ADR 14).
 */
export function defineVideo(
  { video, autoattachGraphicsDevice }: Devices,
  rows: readonly LearnedDevice[],
): UnplacedDevice<VideoDevice>[] {
  if (!allowsVideo({ video, autoattachGraphicsDevice })) return [];
  const row = rows.find(({ id, plugged }) => id === VIDEO_ID && plugged !== false);
  const isRequested = asksForVideo({ video, autoattachGraphicsDevice });
  if (!isRequested && row === undefined && rows.length > 0) return [];
  const recorded = VIDEO_TYPES.find((type) => type === row?.device);
  const requested = VIDEO_TYPES.find((type) => type === video?.type);
  const model: VideoType = requested ?? recorded ?? 'vga';
  return [{ device: { type: 'video', id: VIDEO_ID, model }, field: 'spec.domain.devices.video' }];
}
