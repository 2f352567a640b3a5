/**
 * Messages that are no types of a kind (registry/kinds/): the envelope of a body, values with a JSON form of their own
 * (special-types.ts), and the recursive schemas of custom resource definitions.
 *
 *   Container                 a message; its fields follow indented and separated by `;`
 *     1 name string           number on the wire, JSON name, type; always written, including zero values
 *     2 image? string         omitted if it is empty (`omitempty`)
 *     3 command? string[]     list
 *     4 limits? Quantity{}    map with string keys
 *     5 stdin? *bool          pointer: a zero value on the wire was set and is kept
 */
export const SPECIAL_MESSAGES = `
Unknown
  1 typeMeta? TypeMeta; 2 raw? bytes; 3 contentEncoding? string; 4 contentType? string
TypeMeta
  1 apiVersion? string; 2 kind? string
Time
  1 seconds int64; 2 nanos int32
MicroTime
  1 seconds int64; 2 nanos int32
Quantity
  1 string string
IntOrString
  1 type int64; 2 intVal int32; 3 strVal string
RawExtension
  1 raw bytes
FieldsV1
  1 Raw bytes
ExtraValue
  1 items string[]
CustomResourceSubresourceStatus
JSONSchemaProps
  1 id? string; 2 $schema? string; 3 $ref? *string; 4 description? string; 5 type? string; 6 format? string;
  7 title? string; 8 default? *JSON; 9 maximum? *double; 10 exclusiveMaximum? bool; 11 minimum? *double;
  12 exclusiveMinimum? bool; 13 maxLength? *int64; 14 minLength? *int64; 15 pattern? string; 16 maxItems? *int64;
  17 minItems? *int64; 18 uniqueItems? bool; 19 multipleOf? *double; 20 enum? JSON[]; 21 maxProperties? *int64;
  22 minProperties? *int64; 23 required? string[]; 24 items? *JSONSchemaPropsOrArray; 25 allOf? JSONSchemaProps[];
  26 oneOf? JSONSchemaProps[]; 27 anyOf? JSONSchemaProps[]; 28 not? *JSONSchemaProps;
  29 properties? JSONSchemaProps{}; 30 additionalProperties? *JSONSchemaPropsOrBool;
  31 patternProperties? JSONSchemaProps{}; 32 dependencies? JSONSchemaPropsOrStringArray{};
  33 additionalItems? *JSONSchemaPropsOrBool; 34 definitions? JSONSchemaProps{};
  35 externalDocs? *ExternalDocumentation; 36 example? *JSON; 37 nullable? bool;
  38 x-kubernetes-preserve-unknown-fields? *bool; 39 x-kubernetes-embedded-resource? bool;
  40 x-kubernetes-int-or-string? bool; 41 x-kubernetes-list-map-keys? string[]; 42 x-kubernetes-list-type? *string;
  43 x-kubernetes-map-type? *string; 44 x-kubernetes-validations? ValidationRule[]
JSON
  1 raw bytes
JSONSchemaPropsOrArray
  1 schema *JSONSchemaProps; 2 jSONSchemas JSONSchemaProps[]
JSONSchemaPropsOrBool
  1 allows bool; 2 schema *JSONSchemaProps
JSONSchemaPropsOrStringArray
  1 schema *JSONSchemaProps; 2 property string[]
ExternalDocumentation
  1 description? string; 2 url? string
ValidationRule
  1 rule string; 2 message? string; 3 messageExpression? string; 4 reason? *string; 5 fieldPath? string;
  6 optionalOldSelf? *bool
`;
