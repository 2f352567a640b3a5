import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOptions, type VerbRequestOptions } from '#subresources/read-options.ts';
import type { SubresourceVerb } from '#api/verbs/verb.ts';

const SOURCE = { persistentVolumeClaim: { claimName: 'pvc' } };
const CLAIM = { claimName: 'pvc', hotpluggable: true };
const readAdded = (disk: object, claim: object = CLAIM) =>
  ({
    dryRun: false,
    added: { volume: { name: 'data', persistentVolumeClaim: claim }, disk: { ...disk, name: 'data' } },
  }) as VerbRequestOptions;

const good: Record<string, { verb?: SubresourceVerb; body: object; want: VerbRequestOptions }> = {
  'a disk': {
    body: { name: 'data', disk: { disk: { bus: 'virtio' }, serial: 'A1', cache: 'none' }, volumeSource: SOURCE },
    want: readAdded({ disk: { bus: 'virtio' }, serial: 'A1', cache: 'none' }),
  },
  'a disk with another name, which is replaced': {
    body: { name: 'data', disk: { name: 'other', disk: { bus: 'scsi' } }, volumeSource: SOURCE },
    want: readAdded({ disk: { bus: 'scsi' } }),
  },
  'a disk without a bus': {
    body: { name: 'data', disk: { disk: {} }, volumeSource: SOURCE },
    want: readAdded({ disk: { bus: 'scsi' } }),
  },
  'a disk without a kind': {
    body: { name: 'data', disk: {}, volumeSource: SOURCE },
    want: readAdded({ disk: { bus: 'scsi' } }),
  },
  'a LUN without a bus': {
    body: { name: 'data', disk: { lun: {} }, volumeSource: SOURCE },
    want: readAdded({ lun: { bus: 'scsi' } }),
  },
  'a CD-ROM, for admission to refuse': {
    body: { name: 'data', disk: { cdrom: {} }, volumeSource: SOURCE },
    want: readAdded({ cdrom: {} }),
  },
  'a field that only admission can validate': {
    body: { name: 'data', disk: { disk: { bus: 'scsi' }, io: 'native' }, volumeSource: SOURCE },
    want: readAdded({ disk: { bus: 'scsi' }, io: 'native' }),
  },
  'a claim with hotpluggable false, which is replaced': {
    body: {
      name: 'data',
      disk: { disk: { bus: 'scsi' } },
      volumeSource: {
        persistentVolumeClaim: { claimName: 'pvc', readOnly: true, hotpluggable: false },
        dataVolume: null,
      },
    },
    want: readAdded({ disk: { bus: 'scsi' } }, { ...CLAIM, readOnly: true }),
  },
  'a removal': { verb: 'removevolume', body: { name: 'data' }, want: { dryRun: false, removed: 'data' } },
  'a dry run of a removal': {
    verb: 'removevolume',
    body: { name: 'data', dryRun: ['All'] },
    want: { dryRun: true, removed: 'data' },
  },
};
for (const [name, { verb = 'addvolume', body, want }] of Object.entries(good)) {
  test(`reads ${name}`, () => assert.deepEqual(readOptions(verb, JSON.stringify(body), new URLSearchParams()), want));
}

const NO_BODY = 'Request with no body, a new name is expected as the request body';
const into = (kind: string, field: string, type: string) =>
  `Can not unmarshal Request body to struct, error: json: cannot unmarshal ${kind} into Go struct field ${field} of type ${type}`;

const bad: Record<string, { verb?: SubresourceVerb; body: object | string; message: string }> = {
  'an addition without a body': { body: '', message: NO_BODY },
  'a removal without a body': { verb: 'removevolume', body: {}, message: NO_BODY },
  'no name': { body: { disk: {}, volumeSource: SOURCE }, message: 'AddVolumeOptions requires name to be set' },
  'an empty name': { verb: 'removevolume', body: { name: '' }, message: 'RemoveVolumeOptions requires name to be set' },
  'a name that is a number': { body: { name: 1 }, message: into('number', 'AddVolumeOptions.name', 'string') },
  'no disk': { body: { name: 'a', volumeSource: SOURCE }, message: 'AddVolumeOptions requires disk to not be nil' },
  'no source': { body: { name: 'a', disk: {} }, message: 'AddVolumeOptions requires VolumeSource to not be nil' },
  'a disk that is a list': {
    body: { name: 'a', disk: [] },
    message: into('array', 'AddVolumeOptions.disk', 'v1.Disk'),
  },
  'an empty source': {
    body: { name: 'a', disk: {}, volumeSource: {} },
    message: 'AddVolumeOptions.volumeSource requires persistentVolumeClaim to be set',
  },
  'a DataVolume': {
    body: { name: 'a', disk: {}, volumeSource: { dataVolume: { name: 'dv' } } },
    message:
      'AddVolumeOptions.volumeSource.dataVolume is not supported yet; name its claim in AddVolumeOptions.volumeSource.persistentVolumeClaim',
  },
  'a claim without a name': {
    body: { name: 'a', disk: {}, volumeSource: { persistentVolumeClaim: {} } },
    message: 'AddVolumeOptions.volumeSource.persistentVolumeClaim requires claimName to be set',
  },
  'a claim whose name is a number': {
    body: { name: 'a', disk: {}, volumeSource: { persistentVolumeClaim: { claimName: 7 } } },
    message: into('number', 'AddVolumeOptions.volumeSource.persistentVolumeClaim.claimName', 'string'),
  },
};
for (const [name, { verb = 'addvolume', body, message }] of Object.entries(bad)) {
  test(`refuses ${name}`, () => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    assert.throws(() => readOptions(verb, text, new URLSearchParams()), { code: 400, message });
  });
}
