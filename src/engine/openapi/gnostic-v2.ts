/**
 * Encodes the OpenAPI v2 document as openapi.v2.Document of google/gnostic-models, the only encoding that kubectl 1.20
 * accepts. The numbers are the field numbers of OpenAPIv2.proto.
 */
import { ProtobufWriter } from '#engine/openapi/protobuf-writer.ts';
import type { DocumentSchema } from '#engine/openapi/shared-schemas.ts';
import type { SwaggerDocument, SwaggerOperation, SwaggerParameter, SwaggerPathItem } from '#engine/openapi/v2.ts';

export function encodeGnosticV2(swagger: SwaggerDocument): Buffer {
  const { info, paths, definitions } = swagger;
  const document = new ProtobufWriter();
  document.string(1, swagger.swagger);
  document.message(2, (out) => {
    out.string(1, info.title);
    out.string(2, info.version);
  });
  document.strings(6, swagger.consumes);
  document.strings(7, swagger.produces);
  document.message(8, (out) => writeNamed(out, 2, paths, writePathItem));
  document.message(9, (out) => writeNamed(out, 1, definitions, writeSchema));
  return document.finish();
}

type Write<T> = (out: ProtobufWriter, value: T) => void;

/** Writes a map, which gnostic represents as a list of (name, value) messages. */
function writeNamed<T>(out: ProtobufWriter, field: number, entries: Record<string, T>, write: Write<T>): void {
  for (const name in entries) {
    out.message(field, (pair) => {
      pair.string(1, name);
      pair.message(2, (value) => write(value, entries[name]!));
    });
  }
}

function writePathItem(out: ProtobufWriter, item: SwaggerPathItem): void {
  const fields = { get: 2, put: 3, post: 4, delete: 5, patch: 8 } as const;
  for (const method of ['get', 'put', 'post', 'delete', 'patch'] as const) {
    const operation = item[method];
    if (operation !== undefined) out.message(fields[method], (below) => writeOperation(below, operation));
  }
  writeParameters(out, 9, item.parameters);
}

function writeOperation(out: ProtobufWriter, operation: SwaggerOperation): void {
  out.string(5, operation.operationId);
  out.strings(7, operation.consumes);
  writeParameters(out, 8, operation.parameters);
  out.message(9, (responses) => writeNamed(responses, 1, operation.responses, writeResponse));
  writeExtensions(out, 13, operation);
}

/** Writes a response. Responses and parameters are wrapped in one-of messages: each layer has a single field. */
function writeResponse(out: ProtobufWriter, { description, schema }: SwaggerOperation['responses'][string]): void {
  out.message(1, (response) => {
    response.string(1, description);
    if (schema !== undefined) response.message(2, (item) => item.message(1, (below) => writeSchema(below, schema)));
  });
}

function writeParameters(out: ProtobufWriter, field: number, parameters: readonly SwaggerParameter[] = []): void {
  for (const parameter of parameters) {
    out.message(field, (item) => item.message(1, (oneOf) => writeParameter(oneOf, parameter)));
  }
}

function writeParameter(out: ProtobufWriter, parameter: SwaggerParameter): void {
  switch (parameter.in) {
    case 'body':
      out.message(1, (body) => {
        body.string(2, parameter.name);
        body.string(3, parameter.in);
        body.bool(4, parameter.required);
        body.message(5, (schema) => writeSchema(schema, parameter.schema));
      });
      return;
    case 'query':
      out.message(2, (other) =>
        other.message(3, (query) => {
          query.string(2, parameter.in);
          query.string(4, parameter.name);
          query.string(6, parameter.type);
        }),
      );
      return;
    case 'path':
      out.message(2, (other) =>
        other.message(4, (path) => {
          path.bool(1, parameter.required);
          path.string(2, parameter.in);
          path.string(4, parameter.name);
          path.string(5, parameter.type);
        }),
      );
  }
}

function writeSchema(out: ProtobufWriter, schema: DocumentSchema): void {
  const { type, items, properties, additionalProperties } = schema;
  out.string(1, schema.$ref);
  out.string(2, schema.format);
  out.string(4, schema.description);
  out.strings(19, schema.required);
  if (additionalProperties !== undefined) {
    out.message(21, (item) => {
      if (typeof additionalProperties === 'boolean') item.bool(2, additionalProperties);
      else item.message(1, (below) => writeSchema(below, additionalProperties));
    });
  }
  if (type !== undefined) out.message(22, (below) => below.strings(1, [type]));
  if (items !== undefined) out.message(23, (below) => below.message(1, (item) => writeSchema(item, items)));
  if (properties !== undefined) out.message(25, (below) => writeNamed(below, 1, properties, writeSchema));
  writeExtensions(out, 31, schema);
}

/** Writes the x- extensions. Gnostic encodes their values as YAML text; JSON is valid YAML. */
function writeExtensions(out: ProtobufWriter, field: number, holder: object): void {
  for (const [name, value] of Object.entries(holder)) {
    if (!name.startsWith('x-')) continue;
    out.message(field, (pair) => {
      pair.string(1, name);
      pair.message(2, (any) => any.string(2, JSON.stringify(value)));
    });
  }
}
