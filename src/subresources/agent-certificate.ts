/** Issues certificates to node agents. The user that the API server authenticated decides the name, never the body. */
import { isIP } from 'node:net';
import type { AgentCertificate } from '#api/agent-certificate.ts';
import { ApiError, badRequest, forbiddenPath, methodNotAllowed, tooLarge } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';
import { NODES_GROUP, nodeOfUser } from '#kube/node-user.ts';
import { jsonResponse, type SubresourceBytes, type SubresourceRequest } from '#subresources/http-types.ts';

export interface AgentSigner {
  /** Returns the certificate and the CA certificates (PEM). Throws if the key is not valid. */
  sign(user: string, spec: AgentCertificate['spec']): NonNullable<AgentCertificate['status']>;
}

const MAX_BODY_BYTES = 16 * 1024;
const MAX_HOSTS = 16;

export async function issueAgentCertificate(
  signer: AgentSigner | undefined,
  request: SubresourceRequest,
): Promise<SubresourceBytes> {
  if (signer === undefined) {
    throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
  }
  if (request.method !== 'POST') throw methodNotAllowed();
  const { name, groups } = request.user;
  const node = nodeOfUser(name);
  if (node === undefined || !groups.includes(NODES_GROUP)) throw forbiddenPath(name, 'post', request.path);
  const body = await request.body();
  if (body.length > MAX_BODY_BYTES) throw tooLarge(`the body is larger than ${MAX_BODY_BYTES} bytes`);
  const spec = parseSpec(body.toString('utf8'), node);
  let status: NonNullable<AgentCertificate['status']>;
  try {
    status = signer.sign(name, spec);
  } catch (cause) {
    throw badRequest(`spec.publicKey cannot be certified: ${(cause as Error).message}`);
  }
  return jsonResponse(201, {
    apiVersion: 'subresources.kubevirt.io/v1',
    kind: 'AgentCertificate',
    metadata: { name: node },
    spec,
    status,
  });
}

function parseSpec(text: string, node: string): AgentCertificate['spec'] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw badRequest('the body is not JSON');
  }
  const spec = isRecord(parsed) && isRecord(parsed['spec']) ? parsed['spec'] : {};
  const { publicKey, hosts } = spec;
  if (typeof publicKey !== 'string') throw badRequest('spec.publicKey: Required value');
  if (!Array.isArray(hosts) || hosts.length > MAX_HOSTS) throw badRequest(`spec.hosts: must be at most ${MAX_HOSTS}`);
  return { publicKey, hosts: hosts.map((host) => checkHost(host, node)) };
}

/** Accepts any IP address: clients of a node verify its name as well. */
function checkHost(host: unknown, node: string): string {
  if (typeof host === 'string' && (isIP(host) !== 0 || (host === node && nameErrors('subdomain', host).length === 0))) {
    return host;
  }
  throw badRequest(`spec.hosts: must be IP addresses or the name of the node, not ${JSON.stringify(host)}`);
}
