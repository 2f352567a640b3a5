/** Builds the cloud-init volume of a new VM from the user's data, or from flags. Pure. */
import { stringify } from 'yaml';
import { flagError } from '#cli/commands/create/parameters.ts';

export interface CloudInitOptions {
  /** none, noCloud or configDrive; not case-sensitive. */
  readonly kind: string | undefined;
  readonly userData: string | undefined;
  readonly networkData: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly sshKeys: readonly string[];
  readonly manageSsh: boolean;
}

export const CLOUD_INIT_DISK = 'cloudinitdisk';

const KINDS = { none: undefined, nocloud: 'cloudInitNoCloud', configdrive: 'cloudInitConfigDrive' } as const;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Returns undefined if there is no cloud-init data. Throws CommandError. */
export function buildCloudInitVolume(options: CloudInitOptions): Record<string, unknown> | undefined {
  const { kind = 'nocloud', userData, networkData } = options;
  const source = parseSource(kind);
  for (const [flag, text] of [
    ['cloud-init-user-data', userData],
    ['cloud-init-network-data', networkData],
  ] as const) {
    if (text !== undefined && !BASE64.test(text)) throw flagError(flag, 'it is not base64');
  }
  const generated = buildCloudConfig(options);
  if (generated !== undefined && userData !== undefined) {
    throw flagError(
      'cloud-init-user-data',
      'it cannot be combined with --user, --password-file, --ssh-key and --ga-manage-ssh',
    );
  }
  if (generated === undefined && userData === undefined && networkData === undefined) return undefined;
  if (source === undefined)
    throw flagError('cloud-init', 'none cannot be combined with flags that set cloud-init data');
  const content = {
    ...(generated !== undefined && { userData: generated }),
    ...(userData !== undefined && { userDataBase64: userData }),
    ...(networkData !== undefined && { networkDataBase64: networkData }),
  };
  return { name: CLOUD_INIT_DISK, [source]: content };
}

function parseSource(kind: string) {
  const known = Object.entries(KINDS).find(([name]) => name === kind.toLowerCase());
  if (known !== undefined) return known[1];
  throw flagError(
    'cloud-init',
    `invalid cloud-init data source type "${kind}", supported values are: noCloud, configDrive, none`,
  );
}

function buildCloudConfig({ user, password, sshKeys, manageSsh }: CloudInitOptions): string | undefined {
  const config = {
    ...(user !== undefined && { user }),
    ...(password !== undefined && { password, chpasswd: { expire: false } }),
    ...(sshKeys.length > 0 && { ssh_authorized_keys: [...sshKeys] }),
    ...(manageSsh && { runcmd: [['setsebool', '-P', 'virt_qemu_ga_manage_ssh', 'on']] }),
  };
  if (Object.keys(config).length === 0) return undefined;
  // Keys must not be wrapped. cloud-init reads YAML 1.1, in which a plain yes is a boolean.
  return `#cloud-config\n${stringify(config, { lineWidth: 0, version: '1.1' })}`;
}
