import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LocalImage } from '#cli/commands/image-upload/local-image.ts';
import { buildUploadClaim, type UploadClaimOptions } from '#cli/commands/image-upload/upload-claim.ts';

const image: LocalImage = {
  path: 'a.qcow2',
  format: 'qcow2',
  size: 200_000,
  virtualSize: 1024 ** 3,
  dataBytes: 200_000,
  async *chunks() {},
};
const aWish = (options: Partial<UploadClaimOptions> = {}): UploadClaimOptions => ({
  name: 'disk',
  size: '1Gi',
  storageClass: undefined,
  accessMode: undefined,
  volumeMode: undefined,
  noCreate: false,
  ...options,
});

test('a new claim waits for its content, and has the default class unless another is given', () => {
  assert.deepEqual(buildUploadClaim(aWish(), image), {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'disk', annotations: { 'selfsame.io/upload': 'true' } },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  const { spec } = buildUploadClaim(
    aWish({ storageClass: 'fast', accessMode: 'ReadWriteMany', volumeMode: 'Block' }),
    image,
  );
  assert.deepEqual([spec.storageClassName, spec.accessModes, spec.volumeMode], ['fast', ['ReadWriteMany'], 'Block']);
});

const refused: Record<string, { options: Partial<UploadClaimOptions>; message: RegExp; name?: string }> = {
  'no size': {
    options: { size: undefined },
    message: /^the claim disk does not exist; specify its size with --size$/,
    name: 'UsageError',
  },
  'a size that no file can have': {
    options: { size: '9999Ti' },
    message: /^invalid size "9999Ti"/,
    name: 'UsageError',
  },
  'an invalid size': { options: { size: '10Gib' }, message: /^invalid size "10Gib"/, name: 'UsageError' },
  'a size of 0': { options: { size: '0' }, message: /^invalid size "0"/, name: 'UsageError' },
  'a size below the virtual size of the image': {
    options: { size: '1G' },
    message: /1073741824 bytes \(1\.0 GiB\), but --size=1G has 1000000000/,
  },
  'an invalid access mode': {
    options: { accessMode: 'RWO' },
    message: /^invalid access mode "RWO": expected ReadWriteOnce, /,
    name: 'UsageError',
  },
};
for (const [title, { options, message, name = 'CommandError' }] of Object.entries(refused)) {
  test(`refuses ${title}`, () => assert.throws(() => buildUploadClaim(aWish(options), image), { name, message }));
}
