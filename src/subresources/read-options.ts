/** Parses the body of a verb, such as StartOptions, StopOptions or MigrateOptions. Unknown fields are ignored. Pure. */
import { DEFAULT_UNFREEZE_SECONDS } from '#api/guest-info.ts';
import { badRequest } from '#kube/api-error.ts';
import { parseGoDuration } from '#kube/go/go-duration.ts';
import { isRecord } from '#kube/meta.ts';
import { parseYaml } from '#kube/yaml.ts';
import { bodyError, wrongTypeError, type Fields } from '#subresources/body-fields.ts';
import { readAddedVolume, readRemovedVolume } from '#subresources/volume-options.ts';
import { RELEASE_DISK_VERB, type SubresourceVerb, type VerbOptions } from '#api/verbs/verb.ts';

export interface VerbRequestOptions extends VerbOptions {
  readonly dryRun: boolean;
}

/** Returns the options of a verb; throws 400. The body is JSON, YAML or empty. */
export function readOptions(verb: SubresourceVerb, text: string, query: URLSearchParams): VerbRequestOptions {
  const body = parseBody(text);
  const dryRun = isDryRun(body['dryRun'] ?? query.getAll('dryRun'));
  switch (verb) {
    case 'start':
      return { dryRun, ...optionalField('paused', booleanIn(body, 'StartOptions.paused')) };
    case 'stop':
      return { dryRun, ...optionalField('gracePeriod', integerIn(body, 'StopOptions.gracePeriod')) };
    case 'restart':
      return { dryRun, ...optionalField('gracePeriodSeconds', integerIn(body, 'RestartOptions.gracePeriodSeconds')) };
    case 'migrate':
      return { dryRun, ...optionalField('addedNodeSelector', stringMapIn(body, 'MigrateOptions.addedNodeSelector')) };
    case 'freeze':
      return { dryRun, unfreezeSeconds: unfreezeSecondsIn(body) };
    case 'addvolume':
      return { dryRun, added: readAddedVolume(body) };
    case 'removevolume':
      return { dryRun, removed: readRemovedVolume(body) };
    case RELEASE_DISK_VERB:
      return { dryRun, releasedClaim: requiredStringIn(body, 'claimName') };
    case 'adoptstate':
    case 'releasestate':
      return {
        dryRun,
        stateClaim: { name: requiredStringIn(body, 'claimName'), uid: requiredStringIn(body, 'claimUID') },
      };
    default:
      return { dryRun };
  }
}

function parseBody(text: string): Fields {
  if (text.trim() === '') return {};
  let body: unknown;
  try {
    body = text.trimStart().startsWith('{') ? JSON.parse(text) : parseYaml(text);
  } catch (error) {
    throw bodyError((error as Error).message);
  }
  if (body === null) return {};
  if (!isRecord(body)) throw bodyError('the body is not an object');
  return body;
}

function isDryRun(value: unknown): boolean {
  if (value === null) return false;
  if (!Array.isArray(value)) throw bodyError('dryRun is not a list');
  const wrong: unknown = value.find((item) => item !== 'All');
  if (wrong !== undefined)
    throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(wrong)}: supported values: "All"`);
  return value.length > 0;
}

const fieldOf = (where: string) => where.slice(where.indexOf('.') + 1);

/** Returns a required field of StateClaimOptions, which names the claim whose owner or mark is to change. */
function requiredStringIn(body: Fields, field: 'claimName' | 'claimUID'): string {
  const value = body[field] ?? '';
  if (typeof value !== 'string') throw wrongTypeError(value, `StateClaimOptions.${field}`, 'string');
  if (value === '') throw badRequest(`${field}: Required value: the name and the uid of the claim must be given`);
  return value;
}

function booleanIn(body: Fields, where: string): boolean | undefined {
  const value = body[fieldOf(where)] ?? undefined;
  if (value === undefined || typeof value === 'boolean') return value;
  throw wrongTypeError(value, where, 'bool');
}

function integerIn(body: Fields, where: string): number | undefined {
  const value = body[fieldOf(where)] ?? undefined;
  if (value === undefined || (typeof value === 'number' && Number.isSafeInteger(value))) return value;
  throw wrongTypeError(value, where, 'int64');
}

function stringMapIn(body: Fields, where: string): Record<string, string> | undefined {
  const value = body[fieldOf(where)] ?? undefined;
  if (value === undefined) return undefined;
  if (!isRecord(value)) throw wrongTypeError(value, where, 'map[string]string');
  const wrong = Object.values(value).find((text) => typeof text !== 'string');
  if (wrong !== undefined) throw wrongTypeError(wrong, where, 'string');
  return value as Record<string, string>;
}

const MAX_UNFREEZE_SECONDS = 3600;

/** Returns the timeout after which a frozen guest is thawed; five minutes by default, and always bounded. */
function unfreezeSecondsIn(body: Fields): number {
  const value = body['unfreezeTimeout'] ?? undefined;
  if (value === undefined) return DEFAULT_UNFREEZE_SECONDS;
  if (typeof value !== 'string') throw wrongTypeError(value, 'FreezeUnfreezeTimeout.unfreezeTimeout', 'string');
  const seconds = Math.ceil((parseGoDuration(value) ?? 0) / 1000);
  if (seconds >= 1 && seconds <= MAX_UNFREEZE_SECONDS) return seconds;
  throw badRequest(`unfreezeTimeout: Invalid value: "${value.slice(0, 64)}": must be a duration from 1s to 1h`);
}

function optionalField<K extends string, T>(key: K, value: T | undefined): { [name in K]?: T } {
  return (value === undefined ? {} : { [key]: value }) as { [name in K]?: T };
}
