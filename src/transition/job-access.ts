/**
 * Finds the API server and the Job of the program in a Job's pod: from the variables that our node agents set
 * (SELFSAME_*), or from those that any cluster provides to its pods. Pure except for `readFile`.
 */
import { TRANSITION_COMMAND } from '#api/machine-types/names.ts';
import { inClusterAccess, type ClusterAccess, type ReadFile } from '#client/kubeconfig.ts';
import { isRecord } from '#kube/meta.ts';

export type JobEnvironment = Readonly<Record<string, string | undefined>>;

export class JobAccessError extends Error {
  override name = 'JobAccessError';
}

/** The suffix that the Job controller adds to the name of the Job. */
const POD_SUFFIX = /-[a-z0-9]{5}$/;

export function readJobAccess(env: JobEnvironment, readFile: ReadFile): ClusterAccess {
  const { SELFSAME_API_SERVER: server, SELFSAME_TOKEN_FILE: tokenFile, SELFSAME_CA_FILE: caFile } = env;
  if (!server) {
    return inClusterAccess(readFile, { host: env['KUBERNETES_SERVICE_HOST'], port: env['KUBERNETES_SERVICE_PORT'] });
  }
  if (!tokenFile)
    throw new JobAccessError('Cannot reach the API: SELFSAME_TOKEN_FILE is not set; set it with SELFSAME_API_SERVER');
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:') {
    throw new JobAccessError(`Cannot reach the API: SELFSAME_API_SERVER is "${server}"; expected an https URL`);
  }
  // Without a CA file the CAs of the system are trusted, as by the node agent.
  const ca = caFile ? { certificateAuthority: readFile(caFile) } : {};
  return { server, namespace: '', ...ca, tokenFile, insecureSkipTlsVerify: false };
}

/** Returns the Job of the pod to which the token is bound. JOB_NAME has precedence, for manual runs. */
export function findJobName(env: JobEnvironment, token: string): { readonly namespace: string; readonly name: string } {
  const claims = readClaims(token);
  const { namespace, pod } = claims;
  const podName = isRecord(pod) ? pod['name'] : undefined;
  const nameFromPod = typeof podName === 'string' ? podName.replace(POD_SUFFIX, '') : '';
  const name = env['JOB_NAME'] || nameFromPod;
  if (typeof namespace === 'string' && namespace !== '' && name !== '') return { namespace, name };
  const what = `Cannot find the Job of ${TRANSITION_COMMAND}`;
  throw new JobAccessError(`${what}: its token is not bound to a pod; set JOB_NAME`);
}

/** Reads the claims without verifying the signature: a forged token misleads only this program itself. */
function readClaims(token: string): Record<string, unknown> {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const claims = isRecord(payload) ? payload['kubernetes.io'] : undefined;
    return isRecord(claims) ? claims : {};
  } catch {
    return {};
  }
}
