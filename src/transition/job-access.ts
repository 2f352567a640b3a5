/**
 * How the program in a Job's pod reaches the API, and which Job it runs for: from what a node agent of ours hands over
 * (SELFSAME_*), or from what any cluster gives to its pods. Pure but for the files that it is handed.
 */
import { TRANSITION_COMMAND } from '#api/machine-types/names.ts';
import { inClusterAccess, type ClusterAccess, type ReadFile } from '#client/kubeconfig.ts';
import { isRecord } from '#kube/meta.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export class JobAccessError extends Error {
  override name = 'JobAccessError';
}

/** What the Job controller puts behind the name of the Job. */
const POD_SUFFIX = /-[a-z0-9]{5}$/;

export function accessOf(env: Environment, readFile: ReadFile): ClusterAccess {
  const { SELFSAME_API_SERVER: server, SELFSAME_TOKEN_FILE: tokenFile, SELFSAME_CA_FILE: caFile } = env;
  if (!server) {
    return inClusterAccess(readFile, { host: env['KUBERNETES_SERVICE_HOST'], port: env['KUBERNETES_SERVICE_PORT'] });
  }
  if (!tokenFile)
    throw new JobAccessError('Cannot reach the API: SELFSAME_API_SERVER is set; expected SELFSAME_TOKEN_FILE');
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:') {
    throw new JobAccessError(`Cannot reach the API: SELFSAME_API_SERVER is "${server}"; expected an https URL`);
  }
  // Without one the authorities of the system are asked, as by the agent that handed this over.
  const ca = caFile ? { certificateAuthority: readFile(caFile) } : {};
  return { server, namespace: '', ...ca, tokenFile, insecureSkipTlsVerify: false };
}

/** The Job of the pod to which the token is bound. JOB_NAME wins, for whoever runs the program by hand. */
export function jobNameOf(env: Environment, token: string): { readonly namespace: string; readonly name: string } {
  const claims = claimsOf(token);
  const { namespace, pod } = claims;
  const podName = isRecord(pod) ? pod['name'] : undefined;
  const ofPod = typeof podName === 'string' ? podName.replace(POD_SUFFIX, '') : '';
  const name = env['JOB_NAME'] || ofPod;
  if (typeof namespace === 'string' && namespace !== '' && name !== '') return { namespace, name };
  const what = `Cannot tell for which Job ${TRANSITION_COMMAND} runs`;
  throw new JobAccessError(`${what}: its token is not bound to a pod; expected one that is, or JOB_NAME`);
}

/** Nothing is checked: who is lied to is the program that holds the token. */
function claimsOf(token: string): Record<string, unknown> {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const claims = isRecord(payload) ? payload['kubernetes.io'] : undefined;
    return isRecord(claims) ? claims : {};
  } catch {
    return {};
  }
}
