/* global document, matchMedia, SwaggerUIBundle */

// The style sheet of Swagger UI has dark colors for a page with this class.
const darkScheme = matchMedia('(prefers-color-scheme: dark)');
const applyScheme = () =>
  document.documentElement.classList.toggle('dark-mode', darkScheme.matches);
darkScheme.addEventListener('change', applyScheme);
applyScheme();

const TOKEN_HELP =
  'The token is missing or not valid. Press Authorize; if the page remembers an older token, press Logout there; then paste a current one, and press Authorize in the dialog. With the embedded database, every start of the service prints the token for development. Otherwise, the operator of the service makes one: ./plant-store token create NAME';

const withProps =
  (props) =>
  (Original, { React }) =>
  (own) =>
    React.createElement(Original, { ...own, ...props });

const within =
  (tag, props) =>
  (Original, { React }) =>
  (own) =>
    React.createElement(tag, props, React.createElement(Original, own));

// For elements that Swagger UI makes without a component of their own.
const withAttribute = (selector, name, value) => withAttributes(() => [[selector, name, value]]);

const withAttributes =
  (attributesOf) =>
  (Original, { React }) =>
  (own) => {
    // A new function at each rendering, which React then calls again, because elements may have been added.
    const ref = (div) => {
      for (const [selector, name, value] of attributesOf(own)) {
        div?.querySelectorAll(selector).forEach((element) => element.setAttribute(name, value));
      }
    };
    return React.createElement('div', { ref }, React.createElement(Original, own));
  };

const withTokenHelp =
  (LiveResponse, { React }) =>
  (props) =>
    React.createElement(
      'div',
      null,
      props.response.get('status') === 401 &&
        React.createElement('p', { role: 'alert', className: 'token-help' }, TOKEN_HELP),
      React.createElement(LiveResponse, props),
    );

// What belongs to a response is closed below its description, except for the first one, so that the page is short.
const withDetails = (OriginalResponse, { React }) =>
  class extends OriginalResponse {
    render() {
      const row = super.render();
      const [status, cell, links] = row.props.children;
      const [description, ...content] = cell.props.children;
      const summary = React.createElement('summary', null, description);
      const open = this.props.controlsAcceptHeader;
      const details = React.createElement('details', { open }, summary, ...content);
      const openableCell = React.cloneElement(cell, null, details);
      return React.cloneElement(row, null, status, openableCell, links);
    }
  };

const plantStorePlugin = () => ({
  // The only server is the default of `base_url`; the Content-Security-Policy allows no other.
  components: { ServersContainer: () => null },
  wrapComponents: {
    liveResponse: withTokenHelp,
    response: withDetails,
    // Names and roles for screen readers, which Swagger UI lacks.
    InfoContainer: within('section', { 'aria-label': 'Description' }),
    authorizationPopup: within('div', { role: 'dialog', 'aria-label': 'Authorize' }),
    CloseIcon: withProps({ 'aria-hidden': false, 'aria-label': 'Close the dialog', role: 'img' }),
    // The link below the title.
    InfoUrl: withProps({ url: './openapi.json' }),
    TextArea: withProps({ 'aria-label': 'Request body' }),
    // The bar of an operation is a button, and a button must not contain a link.
    DeepLink: withProps({ enabled: false }),
    // Voice control finds a button by the text that is seen, which another name would hide.
    Button: withProps({ 'aria-label': undefined }),
    ExamplesSelect: withAttribute('select', 'aria-label', 'Example'),
    // The heading "Authorized" skips a level.
    HttpAuth: withAttribute('h6', 'aria-level', '5'),
    responses: withAttributes(({ method, path }) => [
      ['thead td', 'role', 'columnheader'],
      // Each operation has such a table, which is a region of the page.
      ['.responses-table', 'aria-label', `Responses of ${method.toUpperCase()} ${path}`],
    ]),
  },
});

SwaggerUIBundle({
  dom_id: '#swagger-ui',
  // A relative `base_url` is resolved against this URL.
  url: './docs/openapi.json',
  plugins: [plantStorePlugin],
  deepLinking: true,
  docExpansion: 'full',
  defaultModelsExpandDepth: 0,
  persistAuthorization: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  // The numbers of the default theme have too little contrast.
  syntaxHighlight: { theme: 'obsidian' },
});
