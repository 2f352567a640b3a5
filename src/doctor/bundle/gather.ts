/**
 * Gathers the content of a support bundle: the findings of doctor, logs of guests with the command lines of QEMU, the end
 * of the audit log, sizes of files, and the objects of a running plane. The size of every file is limited, and confidential
 * data is removed. A file that cannot be read contains the error instead.
 *
 *   doctor.txt  about.json  files.txt  guests/<node>/<id>/{qemu,swtpm}.log  audit.log  objects/<kind>.json  metrics.txt
 */
import { scrubObject, scrubText } from '#doctor/bundle/scrub.ts';
import { errorMessage } from '#lib/error-message.ts';

/** The sources of a bundle: files below the data directory, and the API of a running plane. */
export interface BundleSource {
  /** Lists the regular files below the directory, up to the limit. */
  files(limit: number): Promise<readonly { readonly path: string; readonly size: number }[]>;
  /** Reads the first and the last bytes of a file. */
  ends(path: string, first: number, last: number): Promise<string>;
  /** The API; undefined if no plane is running. */
  readonly api: { get(path: string): Promise<unknown>; text(path: string): Promise<string> } | undefined;
}

export interface BundleFile {
  readonly name: string;
  readonly text: string;
}

export const LIMITS = {
  files: 20_000,
  logBytes: 64 * 1024,
  guests: 200,
  auditBytes: 512 * 1024,
  objects: 500,
  fileBytes: 2 * 1024 * 1024,
  totalBytes: 32 * 1024 * 1024,
} as const;

/** The kinds to include. Secrets, ConfigMaps and tokens are excluded, including their names. */
export const KINDS: Readonly<Record<string, string>> = {
  nodes: '/api/v1/nodes',
  namespaces: '/api/v1/namespaces',
  pods: '/api/v1/pods',
  persistentvolumeclaims: '/api/v1/persistentvolumeclaims',
  persistentvolumes: '/api/v1/persistentvolumes',
  events: '/api/v1/events',
  storageclasses: '/apis/storage.k8s.io/v1/storageclasses',
  jobs: '/apis/batch/v1/jobs',
  leases: '/apis/coordination.k8s.io/v1/leases',
  apiservices: '/apis/apiregistration.k8s.io/v1/apiservices',
  validatingadmissionpolicies: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  kubevirts: '/apis/kubevirt.io/v1/kubevirts',
  virtualmachines: '/apis/kubevirt.io/v1/virtualmachines',
  virtualmachineinstances: '/apis/kubevirt.io/v1/virtualmachineinstances',
  virtualmachineinstancemigrations: '/apis/kubevirt.io/v1/virtualmachineinstancemigrations',
  virtualmachineidentities: '/apis/identity.selfsame.io/v1/virtualmachineidentities',
  virtualmachinesnapshots: '/apis/snapshot.kubevirt.io/v1beta1/virtualmachinesnapshots',
  virtualmachinerestores: '/apis/snapshot.kubevirt.io/v1beta1/virtualmachinerestores',
};

const GUEST_LOG = /^nodes\/([^/]+)\/domains\/([^/]+)\/((?:qemu|swtpm)\.log)$/;

export async function gatherBundle(source: BundleSource, findings: readonly BundleFile[]): Promise<BundleFile[]> {
  const found = await source.files(LIMITS.files);
  const files = [
    ...findings,
    { name: 'files.txt', text: found.map(({ path, size }) => `${String(size).padStart(14)}  ${path}\n`).join('') },
    ...(await gatherGuestLogs(
      source,
      found.map(({ path }) => path),
    )),
    { name: 'audit.log', text: await readOrError(() => source.ends('audit/audit.log', 0, LIMITS.auditBytes)) },
    ...(await gatherObjects(source.api)),
  ];
  return applyLimits(files);
}

async function gatherGuestLogs(source: BundleSource, paths: readonly string[]): Promise<BundleFile[]> {
  const logs = paths.filter((path) => GUEST_LOG.test(path)).slice(0, 2 * LIMITS.guests);
  return await Promise.all(
    logs.map(async (path) => ({
      name: path.replace(GUEST_LOG, 'guests/$1/$2/$3'),
      // The log begins with the command line.
      text: await readOrError(() => source.ends(path, LIMITS.logBytes, LIMITS.logBytes)),
    })),
  );
}

async function gatherObjects(api: BundleSource['api']): Promise<BundleFile[]> {
  if (api === undefined) return [{ name: 'objects/README', text: 'No plane was running in this data directory.\n' }];
  const files: BundleFile[] = [];
  for (const [kind, path] of Object.entries(KINDS)) {
    const text = await readOrError(async () =>
      JSON.stringify(scrubObject(await api.get(`${path}?limit=${LIMITS.objects}`)), undefined, 1),
    );
    files.push({ name: `objects/${kind}.json`, text });
  }
  files.push({ name: 'metrics.txt', text: await readOrError(() => api.text('/metrics')) });
  return files;
}

async function readOrError(read: () => Promise<string>): Promise<string> {
  try {
    return await read();
  } catch (error) {
    return `Cannot read it: ${errorMessage(error)}\n`;
  }
}

/** Applies the size limits per file and in total; lists omitted files in left-out.txt. */
function applyLimits(files: readonly BundleFile[]): BundleFile[] {
  const kept: BundleFile[] = [];
  const left: string[] = [];
  let total = 0;
  for (const { name, text } of files) {
    const scrubbed = scrubText(text);
    const short = scrubbed.length > LIMITS.fileBytes ? `${scrubbed.slice(0, LIMITS.fileBytes)}\n(cut off)\n` : scrubbed;
    total += Buffer.byteLength(short);
    if (total > LIMITS.totalBytes) left.push(name);
    else kept.push({ name, text: short });
  }
  return left.length === 0 ? kept : [...kept, { name: 'left-out.txt', text: `${left.join('\n')}\n` }];
}
