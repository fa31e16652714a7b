/** The script of the pages under `/docs`, which lack nothing else without it: a copy button, and a search. */

export const script = `
const make = (name, more) => Object.assign(document.createElement(name), more)
for (const block of document.querySelectorAll('pre.command')) {
  const frame = make('div', { className: 'copied' })
  const button = make('button', { type: 'button', textContent: 'Copy' })
  button.onclick = async () => {
    const { textContent } = block
    await navigator.clipboard?.writeText(textContent).catch(() => {})
    getSelection().selectAllChildren(block)
    button.textContent = navigator.clipboard ? 'Copied' : 'Selected'
    setTimeout(() => { button.textContent = 'Copy' }, 2000)
  }
  block.replaceWith(frame)
  frame.append(block, button)
}
const place = document.querySelector('search')
const field = make('input', { type: 'search', placeholder: 'Search', ariaLabel: 'Search the documentation' })
const found = make('ul', { className: 'found', hidden: true })
place.append(field, found)
let index
const wordsIn = (text) => text.toLowerCase().match(/[\\p{L}\\p{N}]+(?:[_.-]+[\\p{L}\\p{N}]+)*/gu) ?? []
const lettersOf = (some) => some.join('').length
// The address has the common word for a page, and somebody may write two words as one.
const prepared = (one) => {
  const names = wordsIn(one.title + ' ' + one.part + ' ' + one.href)
  const head = ' ' + names.join(' ') + ' ' + names.join('')
  return { ...one, head, all: head + ' ' + wordsIn(one.text).join(' ') }
}
field.onfocus = () => {
  index ??= fetch(place.dataset.base + '/docs/index.json').then(async (answer) => (await answer.json()).map(prepared))
}
field.oninput = async () => {
  const words = wordsIn(field.value)
  const parts = words.length ? await index : []
  const rank = ({ head, all }) => {
    // A message has parts that vary: most of its letters are enough, and words in its order come first.
    const had = lettersOf(words.filter((word) => all.includes(' ' + word)))
    const inHead = lettersOf(words.filter((word) => head.includes(' ' + word)))
    const inOrder = lettersOf(words.filter((word, at) => at > 0 && all.includes(' ' + words[at - 1] + ' ' + word)))
    return had * 2 > lettersOf(words) ? had * 10 + inHead * 5 + inOrder * 10 : 0
  }
  const best = parts.map((one) => [rank(one), one]).filter(([score]) => score).sort(([a], [b]) => b - a).slice(0, 12)
  found.replaceChildren(...best.map(([, { title, part, href }]) => {
    const link = make('a', { href: place.dataset.base + href, textContent: part || title })
    link.append(make('small', { textContent: title }))
    const item = make('li')
    item.append(link)
    return item
  }))
  if (words.length && !best.length) found.append(make('li', { textContent: 'Nothing was found' }))
  found.hidden = !words.length
}
field.onkeydown = ({ key }) => { if (key === 'Escape') { field.value = ''; found.hidden = true } }
`
