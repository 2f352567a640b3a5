import { bool, list, overrideOptions, obj, oneOf, quantity, str, type Infer } from '#kube/schema-dsl.ts';

const secretRef = obj({ name: str({ minLength: 1 }) }, { required: ['name'] });

const objectName = str({ minLength: 1, maxLength: 253 });
const optional = bool({ description: 'If true, the VM starts with an empty disk when the object does not exist.' });
const volumeLabel = str({
  maxLength: 32,
  pattern: '^[A-Za-z0-9 ._-]*$',
  description: 'The label of the file system on the disk. Defaults to cfgdata.',
});
const configMap = obj({ name: objectName, optional, volumeLabel }, { required: ['name'] });

const claim = obj({ claimName: str({ minLength: 1 }), readOnly: bool() }, { required: ['claimName'] });

const diskClaim = obj(
  {
    claimName: str({ minLength: 1 }),
    readOnly: bool(),
    hotpluggable: bool({ description: 'True if the disk can be added and removed while the guest runs.' }),
  },
  { required: ['claimName'] },
);

const cloudInitNoCloud = obj({
  userData: str({ maxLength: 65_536 }),
  userDataBase64: str({ maxLength: 131_072 }),
  secretRef,
  networkData: str({ maxLength: 65_536 }),
  networkDataBase64: str({ maxLength: 131_072 }),
  networkDataSecretRef: secretRef,
});

export const vmiVolumeSchema = obj(
  {
    name: str({ minLength: 1, maxLength: 63 }),
    persistentVolumeClaim: diskClaim,
    ephemeral: obj(
      { persistentVolumeClaim: claim },
      { description: 'Reads from the claim; writes are discarded when the instance stops.' },
    ),
    emptyDisk: obj(
      { capacity: quantity() },
      { required: ['capacity'], description: 'A disk that is empty at each start.' },
    ),
    hostDisk: obj(
      {
        path: str({
          minLength: 1,
          maxLength: 4096,
          description:
            'A file in the directory host-disks/NAMESPACE of the node, or one that the administrator allows.',
        }),
        type: oneOf(['Disk', 'DiskOrCreate']),
        capacity: quantity({ description: 'The size of the file if it is created.' }),
        shared: bool(),
      },
      { required: ['path', 'type'] },
    ),
    cloudInitNoCloud,
    configMap: overrideOptions(configMap, { description: 'A disk with a file for each key of a ConfigMap.' }),
    secret: obj(
      { secretName: objectName, optional, volumeLabel },
      { required: ['secretName'], description: 'A disk with a file for each key of a Secret.' },
    ),
    serviceAccount: obj(
      { serviceAccountName: objectName },
      {
        required: ['serviceAccountName'],
        description: 'A disk with a token of a ServiceAccount, created when the guest starts.',
      },
    ),
    downwardAPI: obj(
      {
        fields: list(
          obj(
            {
              path: str({ minLength: 1, maxLength: 32, pattern: '^[A-Za-z0-9._-]+$' }),
              fieldRef: obj(
                { apiVersion: str(), fieldPath: str({ minLength: 1, maxLength: 512 }) },
                { required: ['fieldPath'] },
              ),
            },
            { required: ['path'] },
          ),
          { maxItems: 32 },
        ),
        volumeLabel,
      },
      { description: 'A disk with metadata of the instance, as of the start of the guest.' },
    ),
    directLun: obj(
      {
        guid: str({
          maxLength: 128,
          description: 'World wide name of a SCSI device of the node, for example 3600140580e1c....',
        }),
        uuid: str({ maxLength: 64, description: 'UUID of the device, as in /dev/disk/by-uuid.' }),
      },
      { description: 'A block device of the node, by its guid or its uuid.' },
    ),
  },
  { required: ['name'] },
);

export type VmiVolume = Infer<typeof vmiVolumeSchema>;
export type CloudInitNoCloud = Infer<typeof cloudInitNoCloud>;
