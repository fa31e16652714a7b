/** One tool: its form, a call, and the result as text, never as anything that runs. */

import { useState } from 'preact/hooks'
import { address, hrefOf } from '../address.ts'
import { type Schema, SchemaForm } from '../form/schema-form.tsx'
import { ask } from '../interface.ts'
import { Foreign } from '../parts/foreign.tsx'
import { Action, Field, Problem, Room } from '../parts/parts.tsx'
import { useAction, useResource } from '../resource.ts'

interface ToolBody {
  readonly name: string
  readonly description?: string
  readonly inputSchema: Schema
}
interface Result {
  readonly isError?: boolean
  readonly content?: readonly { readonly type: string; readonly text?: string }[]
  readonly structuredContent?: unknown
}

export function Tool() {
  const [, namespace = '', id = '', , name = ''] = address.value.path
  const path = `/connect/${encodeURIComponent(namespace)}/${encodeURIComponent(id)}/.tools/${encodeURIComponent(name)}`
  const tool = useResource<ToolBody>(path)
  const [value, setValue] = useState<unknown>({})
  const [raw, setRaw] = useState<string | undefined>()
  const call = useAction(async () => {
    const started = performance.now()
    const result = await ask<Result>('POST', path, { body: raw === undefined ? value : JSON.parse(raw) })
    return { result, ms: Math.round(performance.now() - started) }
  })
  const schema = tool.data?.inputSchema ?? {}
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: value } }
  return (
    <Room name="tool" title={name} id={name} resource={tool}>
      <p>
        <a href={hrefOf('connections', namespace, id)}>
          {namespace}/{id}
        </a>
      </p>
      <p>
        <Foreign text={tool.data?.description ?? ''} />
      </p>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          void call.run()
        }}
      >
        {raw === undefined ? (
          <SchemaForm schema={schema} root={schema} value={value} onChange={setValue} at="" label={name} />
        ) : (
          <Field name="raw" label="Arguments as JSON" value={raw} onInput={setRaw} isLong />
        )}
        <Action name="call" type="submit" isMain isBusy={call.isBusy}>
          Call
        </Action>{' '}
        <Action
          name="raw"
          onClick={() => {
            if (raw !== undefined) setValue(parsedOr(raw, value))
            setRaw(raw === undefined ? JSON.stringify(value, null, 2) : undefined)
          }}
        >
          {raw === undefined ? 'As JSON' : 'As a form'}
        </Action>
      </form>
      {call.error !== undefined && <Problem error={call.error} again={() => void call.run()} />}
      {call.done !== undefined && (
        <section
          data-part="result"
          data-outcome={call.done.result.isError === true ? 'tool_error' : 'ok'}
          aria-live="polite"
        >
          <h2>
            {call.done.result.isError === true ? 'The tool reports an error' : 'Result'}{' '}
            <small class="muted">{call.done.ms} ms</small>
          </h2>
          {call.done.result.content?.map((part, index) => (
            <pre key={index}>
              <Foreign text={part.type === 'text' ? (part.text ?? '') : JSON.stringify(part)} />
            </pre>
          ))}
          {call.done.result.structuredContent !== undefined && (
            <details>
              <summary>Structured content</summary>
              <pre>
                <Foreign text={JSON.stringify(call.done.result.structuredContent, null, 2)} />
              </pre>
            </details>
          )}
        </section>
      )}
      <details>
        <summary>As curl, and as an MCP request</summary>
        <pre data-part="curl">{`curl '${location.origin}${path}' -H "Authorization: Bearer $POSTERN_TOKEN" --json '${JSON.stringify(value).replaceAll("'", "'\\''")}'`}</pre>
        <pre data-part="mcp">{JSON.stringify(message, null, 2)}</pre>
      </details>
    </Room>
  )
}

function parsedOr(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return otherwise
  }
}
