/** Starts the console in the document. */

import { render } from 'preact'
import { findSession } from './interface.ts'
import { Shell } from './shell.tsx'
import './style.css'

void findSession().then(() => render(<Shell />, document.body))
