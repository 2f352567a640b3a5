/** Certificates for the agents of nodes. The API server has said who asks; that, and nothing from the body, names it. */
import { isIP } from 'node:net';
import type { AgentCertificate } from '#api/agent-certificate.ts';
import { ApiError, badRequest, forbiddenPath, methodNotAllowed, tooLarge } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';
import { NODES_GROUP, nodeOfUser } from '#kube/node-user.ts';
import { jsonAnswer, type BytesAnswer, type SubresourceRequest } from '#subresources/http-types.ts';

export interface AgentSigner {
  /** The certificate (PEM), and whom to trust (PEM). Throws where the key is none. */
  sign(user: string, spec: AgentCertificate['spec']): NonNullable<AgentCertificate['status']>;
}

const MAX_BODY_BYTES = 16 * 1024;
const MAX_HOSTS = 16;

export async function agentCertificate(
  signer: AgentSigner | undefined,
  request: SubresourceRequest,
): Promise<BytesAnswer> {
  if (signer === undefined) {
    throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
  }
  if (request.method !== 'POST') throw methodNotAllowed();
  const { name, groups } = request.user;
  const node = nodeOfUser(name);
  if (node === undefined || !groups.includes(NODES_GROUP)) throw forbiddenPath(name, 'post', request.path);
  const body = await request.body();
  if (body.length > MAX_BODY_BYTES) throw tooLarge(`the body is larger than ${MAX_BODY_BYTES} bytes`);
  const spec = specOf(body.toString('utf8'), node);
  let status: NonNullable<AgentCertificate['status']>;
  try {
    status = signer.sign(name, spec);
  } catch (cause) {
    throw badRequest(`spec.publicKey cannot be certified: ${(cause as Error).message}`);
  }
  return jsonAnswer(201, {
    apiVersion: 'subresources.kubevirt.io/v1',
    kind: 'AgentCertificate',
    metadata: { name: node },
    spec,
    status,
  });
}

function specOf(text: string, node: string): AgentCertificate['spec'] {
  let sent: unknown;
  try {
    sent = JSON.parse(text);
  } catch {
    throw badRequest('the body is not JSON');
  }
  const spec = isRecord(sent) && isRecord(sent['spec']) ? sent['spec'] : {};
  const { publicKey, hosts } = spec;
  if (typeof publicKey !== 'string') throw badRequest('spec.publicKey: Required value');
  if (!Array.isArray(hosts) || hosts.length > MAX_HOSTS) throw badRequest(`spec.hosts: must be at most ${MAX_HOSTS}`);
  return { publicKey, hosts: hosts.map((host) => hostOf(host, node)) };
}

/** Addresses are whatever they are: who asks a node looks at its name, too. */
function hostOf(host: unknown, node: string): string {
  if (typeof host === 'string' && (isIP(host) !== 0 || (host === node && nameErrors('subdomain', host).length === 0))) {
    return host;
  }
  throw badRequest(`spec.hosts: must be IP addresses or the name of the node, not ${JSON.stringify(host)}`);
}
