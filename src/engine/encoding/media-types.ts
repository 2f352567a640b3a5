/** Media types of bodies and responses, and values encoded in them. */
import { stringify as stringifyYaml } from 'yaml';

export const JSON_TYPE = 'application/json';
export const YAML_TYPE = 'application/yaml';

/** Strips parameters: `application/json; charset=utf-8` → `application/json`. */
export function mediaType(contentType: string): string {
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}

export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Longer texts stay JSON, which is also YAML: formatting them as blocks would take 20 times as long. */
const MAX_FORMATTED = 64 * 1024;

export function encodeYaml(value: unknown): Buffer {
  const json = JSON.stringify(value);
  if (json.length > MAX_FORMATTED) return Buffer.from(`${json}\n`);
  return Buffer.from(stringifyYaml(value, { aliasDuplicateObjects: false }));
}
