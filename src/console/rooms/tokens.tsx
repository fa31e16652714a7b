/** The composer: a policy that is linted and covered while it is written, explained, and minted. */

import { useEffect, useState } from 'preact/hooks'
import type { Coverage, Explanation, LintAnswer } from '../../model/explain.ts'
import { address, filter } from '../address.ts'
import { ask, session } from '../interface.ts'
import { Foreign } from '../parts/foreign.tsx'
import { Action, Copied, Field, Room, State } from '../parts/parts.tsx'
import { useAction } from '../resource.ts'

const example = '[\n  { "operations": "execute", "ttl": "1h" }\n]'
/** Milliseconds after the last key before the policy is looked at. */
const quietMs = 500

const draftKey = () => `draft tokens ${session.value?.userId ?? ''}`

/** What is said of a policy: of the newest text alone. */
function useAnswers(text: string) {
  const [answers, setAnswers] = useState<{ lint?: LintAnswer; coverage?: Coverage; error?: Error }>({})
  useEffect(() => {
    const stop = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const body = { policy: [JSON.parse(text)].flat() }
        const [lint, coverage] = await Promise.all([
          ask<LintAnswer>('POST', '/tokens/lint', { body, signal: stop.signal }),
          ask<Coverage>('POST', '/tokens/coverage', { body: { ...body, limit: 1 }, signal: stop.signal }),
        ])
        if (!stop.signal.aborted) setAnswers({ lint, coverage })
      } catch (error) {
        if (!stop.signal.aborted) setAnswers({ error: error as Error })
      }
    }, quietMs)
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [text])
  return answers
}

export function Tokens() {
  const { query } = address.value
  const [policy, setPolicy] = useState(query.get('policy') ?? sessionStorage.getItem(draftKey()) ?? example)
  const write = (text: string) => {
    setPolicy(text)
    sessionStorage.setItem(draftKey(), text)
  }
  const { lint, coverage, error } = useAnswers(policy)
  const mint = useAction(async () => {
    const body = { policy: [JSON.parse(policy)].flat() }
    return ask<{ token: string; expiresAt: string }>('POST', '/tokens', { body })
  })
  const [token, setToken] = useState('')
  const revoke = useAction(async () => {
    await ask('POST', '/tokens/revoke', { body: { token } })
    setToken('')
    return 'The token is revoked, with every token minted with it.'
  })
  const summary = coverage?.summary
  return (
    <Room name="tokens" title="Tokens">
      <div class="columns">
        <section>
          <Field name="policy" label="Policy" value={policy} onInput={write} isLong error={error?.message} />
          <Action name="mint" isMain isBusy={mint.isBusy} onClick={() => void mint.run()}>
            Mint a token
          </Action>
          {mint.error !== undefined && <p class="wrong">{mint.error.message}</p>}
          {mint.done !== undefined && (
            <p data-part="minted" role="status">
              Copy it now; it is never shown again. It ends at {mint.done.expiresAt}: <Copied text={mint.done.token} />
            </p>
          )}
        </section>
        <section aria-live="polite">
          <h2>What it allows</h2>
          <p data-part="words">
            {summary === undefined || summary === null
              ? 'Not known yet.'
              : `${summary.tools.allow} of ${summary.tools.total} tools on ${summary.connections.some} of ${summary.connections.total} connections${summary.complete ? '' : ', as far as was searched'}.`}
            {(summary?.tools.depends ?? 0) > 0 && ` ${summary?.tools.depends} more depend on their arguments.`}
            {(summary?.unknown ?? 0) > 0 && ` The tools of ${summary?.unknown} connections are not known.`}
          </p>
          <ul class="rows" data-part="findings">
            {lint?.findings.map((one) => (
              <li key={`${one.code} ${one.place}`}>
                <State level={one.severity}>{one.code}</State> <code>{one.place}</code>
                <div>
                  <Foreign text={one.words} />
                </div>
              </li>
            ))}
            {lint?.findings.length === 0 && <li class="muted">Nothing is wrong with it.</li>}
          </ul>
        </section>
      </div>
      <Explain policy={policy} />
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          void revoke.run()
        }}
      >
        <h2>Take a token away</h2>
        <Field
          name="token"
          label="Token"
          type="password"
          value={token}
          onInput={setToken}
          error={revoke.error?.message}
        />
        <Action name="revoke" type="submit" isBusy={revoke.isBusy}>
          Revoke it
        </Action>
        {revoke.done !== undefined && <p role="status">{revoke.done}</p>}
      </form>
    </Room>
  )
}

const parts = ['namespace', 'connection', 'tool'] as const

/** Why the policy allows or refuses a request. */
function Explain({ policy }: { readonly policy: string }) {
  const { query } = address.value
  const explain = useAction(async () => {
    const given = parts.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : []))
    const body = { policy: [JSON.parse(policy)].flat(), request: Object.fromEntries(given) }
    return ask<Explanation>('POST', '/tokens/explain', { body })
  })
  const { done } = explain
  return (
    <form
      class="panel"
      onSubmit={(event) => {
        event.preventDefault()
        void explain.run()
      }}
    >
      <h2>Would it allow a call?</h2>
      <div class="filters">
        {parts.map((name) => (
          <Field
            key={name}
            name={`request.${name}`}
            label={name}
            value={query.get(name) ?? ''}
            onInput={(value) => filter({ [name]: value })}
          />
        ))}
      </div>
      <Action name="explain" type="submit" isBusy={explain.isBusy}>
        Explain
      </Action>
      {explain.error !== undefined && <p class="wrong">{explain.error.message}</p>}
      {done !== undefined && (
        <div data-part="verdict" data-verdict={done.verdict} role="status">
          <p>
            <State level={done.verdict}>
              <Foreign text={done.words} />
            </State>
          </p>
          <ul class="rows">
            {[...done.outside, ...done.blocks.flatMap(({ constraints }) => constraints)].map((one) => (
              <li key={one.place}>
                <State level={one.verdict}>{one.verdict}</State> <code>{one.place}</code> <Foreign text={one.words} />
              </li>
            ))}
          </ul>
          {done.notes.map(({ code, words }) => (
            <p key={code}>
              <Foreign text={words} />
            </p>
          ))}
        </div>
      )}
    </form>
  )
}
