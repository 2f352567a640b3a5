/** virtctl image-upload */
import { encodeBootFirmware, soleBootFirmware } from '#api/storage/boot-firmware.ts';
import { UPLOAD_ANNOTATION } from '#api/storage/disk-stream.ts';
import { defineCommand } from '#cli/command.ts';
import { CommandError, explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import { integerFlag, switchFlag, textFlag, type FlagValues } from '#lib/command-line/flag.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { openImage } from '#cli/commands/image-upload/local-image.ts';
import {
  completeClaim,
  prepareClaim,
  releaseClaim,
  removeNewClaim,
  type UploadClaim,
} from '#cli/commands/image-upload/upload-claim.ts';
import { uploadImage, UploadInterruptedError } from '#cli/commands/image-upload/upload-image.ts';
import { diskRefusalOf } from '#cli/transfer/disk-transfer.ts';
import { errorMessage } from '#lib/error-message.ts';

const READY_SECONDS = 300;
const BOOT_NOTES = {
  BIOS: 'Note: the image has a boot loader for BIOS only; use "virtctl create vm" without --efi.',
  UEFI: 'Note: the image has a boot loader for UEFI only; use "virtctl create vm --efi".',
};

const flags = {
  imagePath: textFlag({ name: 'image-path', help: 'Path to the local VM image.', completes: 'file' }, 'string'),
  size: textFlag({ name: 'size', help: 'The size of the PVC to create (ex. 10Gi, 500Mi).' }, 'string'),
  storageClass: textFlag({ name: 'storage-class', help: 'The storage class for the PVC.' }, 'string'),
  accessMode: textFlag(
    { name: 'access-mode', help: 'The access mode for the PVC; ReadWriteOnce by default.' },
    'string',
  ),
  volumeMode: textFlag(
    { name: 'volume-mode', help: 'Specify the VolumeMode (block/filesystem).', completes: ['block', 'filesystem'] },
    'string',
  ),
  noCreate: switchFlag({ name: 'no-create', help: "Don't attempt to create a new PVC." }),
  replace: switchFlag({ name: 'replace', help: 'Upload even if the PVC has content, and overwrite it.' }),
  force: switchFlag({
    name: 'force',
    help: 'Upload the file even if it does not look like a disk image, or ends before its last partition.',
  }),
  waitSecs: integerFlag({ name: 'wait-secs', help: 'Seconds to wait for the PVC to be ready.' }, READY_SECONDS),
  forceBind: switchFlag({
    name: 'force-bind',
    help: 'Accepted for compatibility: a PVC is always bound for an upload.',
  }),
  insecure: switchFlag({ name: 'insecure', help: 'Accepted for compatibility: there is no upload proxy.' }),
  uploadProxy: textFlag(
    { name: 'uploadproxy-url', help: 'Not used: images are uploaded through the API server.' },
    'string',
  ),
  archive: textFlag(
    { name: 'archive-path', help: 'Not supported: only disk images can be uploaded.', hidden: true },
    'string',
  ),
  blockVolume: switchFlag({ name: 'block-volume', help: 'DEPRECATED - Use --volume-mode=block.', hidden: true }),
  pvcName: textFlag({ name: 'pvc-name', help: 'DEPRECATED - The destination PVC name.', hidden: true }, 'string'),
  pvcSize: textFlag({ name: 'pvc-size', help: 'DEPRECATED - Use --size.', hidden: true }, 'string'),
};
type Flags = FlagValues<typeof flags>;

export const imageUpload = defineCommand({
  name: 'image-upload',
  usage: 'pvc|dv NAME',
  summary: 'Upload a VM image to a PersistentVolumeClaim.',
  details:
    'Accepts raw and qcow2 images, also compressed with gzip or xz. Refuses images that reference other files (a backing\n' +
    'file, external data). The image is stored as raw. After a broken connection, the upload resumes without sending data\n' +
    'again; run the same command to resume an upload that was stopped. At the end, both sides compare the SHA-256. See\n' +
    'docs/images.md.',
  example: [
    '  # Upload a local disk image to a newly created PersistentVolumeClaim:',
    '  virtctl image-upload pvc fedora-pvc --size=10Gi --image-path=/images/fedora30.qcow2',
    '',
    '  # Upload a local disk image to an existing PersistentVolumeClaim:',
    '  virtctl image-upload pvc fedora-pvc --no-create --image-path=/images/fedora30.qcow2',
    '',
    '  # Use the deprecated flags:',
    '  virtctl image-upload --pvc-name=fedora-pvc --pvc-size=10Gi --image-path=/images/fedora30.raw.xz',
  ].join('\n'),
  flags,
  args: [0, 2],
  completes: [['pvc', 'dv'], 'pvc'],
  async run({ args, flags: given, connect, print, report, status }) {
    const { claimOptions, notes, imagePath } = parseUploadArguments(args, given);
    for (const note of notes) report(note);
    const image = await openImage(imagePath, { report, force: given.force });
    const api = await connect();
    const claim = await prepareClaim(api, claimOptions, image);
    const where = `${api.namespace}/${claim.name}`;
    print(claim.newUid ? `PersistentVolumeClaim ${where} created` : `Using existing PVC ${where}`);
    const options = { status, readyMs: given.waitSecs * 1000, replace: given.replace };
    const sha256 = await uploadImage(api, claim.name, image, options).catch(async (cause: unknown) => {
      const isInterrupted = cause instanceof UploadInterruptedError;
      const hint = isInterrupted ? 'Run the same command again to resume the upload.' : await undoClaim(api, claim);
      const replace = diskRefusalOf(cause) === 'HasContent' ? '; use --replace to overwrite it' : '';
      const text = `Cannot upload ${imagePath} to ${where}: ${errorMessage(cause)}${replace}\n${hint}`;
      throw new CommandError(text, { cause });
    });
    const release = `"kubectl annotate pvc -n ${api.namespace} ${claim.name} ${UPLOAD_ANNOTATION}-"`;
    await explainFailure(
      `${where} has the content of ${imagePath}, but no VM can use it yet; run ${release}: `,
      completeClaim(api, claim.name, image),
    );
    print(`Uploading ${imagePath} completed successfully, sha256 ${sha256}`);
    const firmware = soleBootFirmware(encodeBootFirmware(image.boot));
    if (firmware !== undefined) report(BOOT_NOTES[firmware]);
  },
});

/** Leaves nothing of an upload that the node refused. Returns a note for the user. */
async function undoClaim(api: ApiConnection, { name, newUid, wasAwaitingUpload }: UploadClaim): Promise<string> {
  const where = `PersistentVolumeClaim ${api.namespace}/${name}`;
  if (newUid !== undefined) {
    const error = await removeNewClaim(api, name, newUid);
    return error === undefined
      ? `${where} was deleted again.`
      : `${where} was created and is waiting for its content; it cannot be deleted: ${error}`;
  }
  // The disk is unchanged and stays usable.
  if (!wasAwaitingUpload) await releaseClaim(api, name);
  return '';
}

/** Returns the requested upload. Throws UsageError. */
function parseUploadArguments(args: readonly string[], given: Flags) {
  const { imagePath, storageClass, accessMode, noCreate, pvcName } = given;
  if (given.archive !== undefined) {
    throw new UsageError('--archive-path is not supported: a PersistentVolumeClaim holds one disk; use --image-path');
  }
  if (imagePath === undefined) throw new UsageError('required flag(s) "image-path" not set');
  if (given.size !== undefined && given.pvcSize !== undefined && given.size !== given.pvcSize) {
    throw new UsageError('--pvc-size deprecated, use --size');
  }
  const [kind, name] = parseTargetArguments(args, pvcName);
  const notes = [
    ...(kind === 'dv'
      ? ['Note: DataVolumes are not supported; uploading to a PersistentVolumeClaim with this name.']
      : []),
    ...(given.uploadProxy === undefined ? [] : ['Warning: --uploadproxy-url is ignored: CDI is not used.']),
  ];
  const volumeMode = volumeModeOf(given);
  const size = given.size ?? given.pvcSize;
  return { claimOptions: { name, size, storageClass, accessMode, volumeMode, noCreate }, notes, imagePath };
}

function parseTargetArguments(
  args: readonly string[],
  pvcName: string | undefined,
): [kind: 'pvc' | 'dv', name: string] {
  if (pvcName !== undefined) {
    if (args.length > 0) throw new UsageError('cannot use --pvc-name and args');
    return ['pvc', pvcName];
  }
  const [kind = '', name] = args;
  if (name === undefined) throw new UsageError('expected pvc and the name of a PersistentVolumeClaim');
  const known = kind.toLowerCase();
  if (known === 'pvc' || known === 'dv') return [known, name];
  throw new UsageError(`invalid resource type ${kind}; expected pvc or dv`);
}

function volumeModeOf({ volumeMode, blockVolume }: Flags): 'Block' | 'Filesystem' | undefined {
  if (volumeMode === undefined) return blockVolume ? 'Block' : undefined;
  const mode = ({ block: 'Block', filesystem: 'Filesystem' } as const)[volumeMode.toLowerCase()];
  if (mode === undefined || (blockVolume && mode !== 'Block')) {
    throw new UsageError(`Invalid volume mode ${JSON.stringify(volumeMode)}: expected block or filesystem`);
  }
  return mode;
}
