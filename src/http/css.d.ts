/** A style sheet as its text, with `type: 'text'`; the bundle of the console has it as a file. */
declare module '*.css' {
  const text: string
  export default text
}
